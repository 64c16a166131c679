"""The session of one recorder: what all of its windows have in common, such as the run, the rank and the options."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from deepscope.capture import process_identity as process
from deepscope.capture.lines import UserCode
from deepscope.capture.naming import worker_name
from deepscope.capture.options import RecordingOptions, first_rank, is_chosen, warn_if_nobody
from deepscope.capture.schedule import Schedule
from deepscope.errors import OptionError
from deepscope.trace.format.span_names import PHASE_ANNOTATIONS

_windows: dict[tuple[str, str], int] = {}
"""Windows written so far in this process, by run and stage."""


class RecordingSession:
    """What all windows of one recorder have in common."""

    def __init__(
        self,
        options: RecordingOptions,
        *,
        name: str | None = None,
        stage: str = "",
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        phases: Mapping[str, str] = PHASE_ANNOTATIONS,
        run_id: str | None = None,
        trainer: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = options
        self.metadata: dict[str, Any] = {}
        self.pid = os.getpid()
        self.user_code = UserCode.find(options.root, options.include, options.exclude)
        self._name = name
        self._given_rank, self._given_local_rank, self._world_size = rank, local_rank, world_size
        self._choice = options.rank_choice
        self.stage = stage
        self.phases = phases
        self._given_run_id = run_id
        self.trainer = trainer
        self._run_id = ""
        self._agreed_run_id: str | None = None
        self._find_rank()

    def _find_rank(self) -> None:
        """A process group may come up after the recording was made, and it alone may know the rank (`mp.spawn`)."""
        self.rank = process.find_rank() if self._given_rank is None else self._given_rank
        program = process.program_name(self.user_code.root) if self._name else ""
        self.worker = worker_name(self._name, self.stage, self.rank, self.world_size, program)
        local = self._given_local_rank
        self.local_rank = process.find_local_rank(self.rank) if local is None else local
        self.is_chosen = is_chosen(self._choice, self.rank, self.local_rank)
        """Whether this rank records."""
        self.is_first = self.rank == first_rank(self._choice)
        """Whether this is the first of the ranks that record: one of them tells where the traces lie."""

    @property
    def world_size(self) -> int:
        """How many ranks there are: a process group may come up after the recording was made."""
        return process.find_world_size() if self._world_size is None else self._world_size

    @property
    def is_forked(self) -> bool:
        """Whether this process is a child of the one that records; there is nothing for it to end or save."""
        return os.getpid() != self.pid

    def begin(self) -> None:
        """The recorder starts, maybe once more: a run of its own unless it was given one."""
        self.pid = os.getpid()
        self._find_rank()
        warn_if_nobody(self._choice, self.rank, self.world_size)
        self._run_id = self._given_run_id or process.new_run_id()
        self._agreed_run_id = None

    @property
    def run_id(self) -> str:
        """That of all ranks, as far as it is known."""
        return self._agreed_run_id or self._run_id

    def agree(self) -> None:
        """Take the run id that all ranks have, as soon as there is a process group; it may be gone at the end."""
        if self._agreed_run_id is None:
            self._agreed_run_id = process.agreed_run_id(self._run_id)

    def agreed_schedule(self, schedule: Schedule, total_steps: int | None) -> Schedule:
        """The schedule that the first rank to ask has, so that all record the same steps, whatever their lengths."""
        if schedule.numbers is None:
            return schedule
        held = process.agreed("schedule", self._run_id, json.dumps(dict(schedule.numbers)))
        return schedule if held is None else Schedule.from_numbers(json.loads(held), total_steps)

    def end(self) -> None:
        if not self._given_run_id and not self.is_forked:
            process.end_run()

    def next_window(self) -> int:
        """Number of the window among those of its stage in this run, of whichever recorder."""
        key = (self._run_id, self.stage)
        number = _windows.get(key, 0)
        _windows[key] = number + 1
        return number

    def add_metadata(self, key: str, value: Any) -> None:
        """Have the traces from here on tell `value` under a key; raises `OptionError` unless JSON can say it."""
        self.metadata[key] = _as_json(key, value)


def _as_json(key: str, value: Any) -> Any:
    if not isinstance(key, str) or not key:
        raise OptionError("key", key, "metadata must stand under a word")
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise OptionError("value", value, f"{key!r} must be JSON (numbers, words, lists, dicts): {error}") from None
