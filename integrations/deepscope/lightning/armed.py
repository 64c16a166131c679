"""What a run of a Trainer arms in torch and in Lightning: however the run ends, one call takes all of it back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture.compiled.level import ProvenanceHold
from deepscope.capture.options import RecordingOptions
from deepscope.capture.resources import counters_of_run
from deepscope.capture.saving.header import RecordingSession
from deepscope.capture.workers import WorkerClocks, armed_clocks

if TYPE_CHECKING:
    from deepscope.capture.resources import RunCounters


@dataclass
class Armed:
    """Of one run at a time; what is armed anew takes the place of what was."""

    provenance: ProvenanceHold | None = None
    logging: LoggingSpans | None = None
    workers: WorkerClocks | None = None
    counters: RunCounters | None = None
    """Of the whole run, through all its stages."""
    counted: RecordingSession | None = None
    """The run, as the file with its counters describes it."""

    def hold_provenance(self) -> None:
        """Compiled code is to know its lines from here on: recorders come with their first batch, which compiles."""
        if self.provenance is None:
            self.provenance = ProvenanceHold()

    def count(self, session: RecordingSession, folder: Path) -> None:
        """Sample the counters of a run that is described so, until it ends."""
        self._end_counters()
        self.counted = session
        session.begin()
        self.counters = counters_of_run(session, folder)
        if self.counters is not None:
            self.counters.start()

    def arm(
        self, options: RecordingOptions, trainer: Any, profile: Callable[[str], AbstractContextManager[object]]
    ) -> None:
        """Time what the Trainer logs, and the workers of its loaders, which start before there is a recorder."""
        self._end_logging()
        self.logging = None if trainer is None else LoggingSpans(trainer, profile)
        self._disarm_workers()
        self.workers = armed_clocks(options)

    def disarm(self) -> None:
        """Leave nothing armed."""
        self._end_counters()
        self._end_logging()
        self._disarm_workers()
        provenance, self.provenance = self.provenance, None
        if provenance is not None:
            provenance.release()

    def _end_counters(self) -> None:
        counters, self.counters, self.counted = self.counters, None, None
        if counters is not None:
            counters.stop()

    def _end_logging(self) -> None:
        logging, self.logging = self.logging, None
        if logging is not None:
            logging.remove()

    def _disarm_workers(self) -> None:
        workers, self.workers = self.workers, None
        if workers is not None:
            workers.disarm()


_METHODS = (
    "update_train_step_metrics",
    "update_eval_step_metrics",
    "update_train_epoch_metrics",
    "update_eval_epoch_metrics",
    "log_eval_end_metrics",
    "log_metrics",
)
"""Of the Trainer's logger connector, in every Lightning from 2.1 on; what is missing is left alone."""


class LoggingSpans:
    """The methods of one Trainer's logger connector in spans, until `remove`."""

    def __init__(self, trainer: Any, profile: Callable[[str], AbstractContextManager[Any]]) -> None:
        self._connector = getattr(trainer, "_logger_connector", None)
        self._wrapped: list[str] = []
        for name in _METHODS:
            method = getattr(self._connector, name, None)
            if callable(method) and name not in vars(self._connector):
                setattr(self._connector, name, _in_span(method, profile, f"[Logger]{name}"))
                self._wrapped.append(name)

    def remove(self) -> None:
        """Leave the connector as it was."""
        for name in self._wrapped:
            vars(self._connector).pop(name, None)
        self._wrapped.clear()


def _in_span(
    method: Callable[..., Any], profile: Callable[[str], AbstractContextManager[Any]], action: str
) -> Callable[..., Any]:
    @functools.wraps(method)
    def spanned(*args: Any, **kwargs: Any) -> Any:
        with profile(action):
            return method(*args, **kwargs)

    return spanned
