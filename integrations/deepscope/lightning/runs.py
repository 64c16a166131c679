"""One run of a Trainer, from its setup to its end: who we are, where the traces go, what it arms, and its summary."""

from __future__ import annotations

import functools
import shlex
import shutil
import weakref
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture import process_identity as process
from deepscope.capture.compiled.graphs import ProvenanceHold
from deepscope.capture.dynamo import compiled_functions
from deepscope.capture.lines import UserCode
from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.capture.options import RecordingOptions
from deepscope.capture.resources import counters_of_run
from deepscope.capture.session import RecordingSession
from deepscope.capture.whole_run.pause_sampler import PauseSampler
from deepscope.capture.whole_run.run_timer import RunTimer
from deepscope.capture.workers import WorkerClocks, armed_clocks
from deepscope.lightning.stages import Stage, StageWindows
from deepscope.printable import printable
from deepscope.records import Profile
from deepscope.records.source_files import short_path
from deepscope.report.columns import columns
from deepscope.report.findings import finding_words, without_findings
from deepscope.report.memory import memory_entries
from deepscope.report.tables import table
from deepscope.report.terminal import MIN_WIDTH, Styles, cut_end, entries_text, render
from deepscope.report.text_report import evaluation_text, header
from deepscope.trace.format.run_account import RunAccount, RunPartName

if TYPE_CHECKING:
    from deepscope.capture.recorder import Recorder


class Armed:
    """What a run has at work beside its recorders, until `disarm`."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        self.times_logging = False
        """Whether what the Trainer logs is timed."""
        self.workers: WorkerClocks | None = None
        self.pauses: PauseSampler | None = None
        self.counted: RecordingSession | None = None
        """The run, as the file with its counters describes it."""

    def hold_provenance(self) -> None:
        """Compiled code is to know its lines from here on: recorders come with their first batch, which compiles."""
        self._ends.callback(ProvenanceHold().release)

    def count(self, session: RecordingSession, folder: Path) -> None:
        """Sample the counters of a run that is described so, through all its stages."""
        self.counted = session
        session.begin()
        counters = counters_of_run(session, folder)
        if counters is not None:
            counters.start()
            self._ends.callback(counters.stop)

    def arm(
        self, options: RecordingOptions, trainer: Any, profile: Callable[[str], AbstractContextManager[object]]
    ) -> None:
        """Time what the Trainer logs, and the workers of its loaders, which start before there is a recorder."""
        if trainer is not None:
            self.times_logging = True
            self._ends.callback(LoggingSpans(trainer, profile).remove)
        self.workers = armed_clocks(options)
        if self.workers is not None:
            self._ends.callback(self.workers.disarm)

    def sample_pauses(self, timer: RunTimer, code: UserCode) -> None:
        """Sample where this thread, which trains, is while no step ends."""
        thread = get_ident()
        self.pauses = PauseSampler(timer, lambda: thread, code)
        self.pauses.start()
        self._ends.callback(self.pauses.stop)

    def account(self, timer: RunTimer, trainer: Any) -> RunAccount:
        """Of the run that `timer` has timed up to now."""
        unknown: list[RunPartName] = [] if self.times_logging else ["logging"]
        if not timer.has_come("checkpoint") and getattr(trainer, "checkpoint_callbacks", None):
            unknown.append("checkpoint")  # Lightning 2.1 has no action for it
        return timer.account(
            unknown=unknown,
            compiled=compiled_functions(timer.began_epoch_ns),
            pauses=self.pauses.account() if self.pauses is not None else (),
        )

    def disarm(self) -> None:
        """Leave nothing at work; of no use from then on."""
        self._ends.close()


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


_OPTIONS = (
    "accumulate_grad_batches",
    "check_val_every_n_epoch",
    "gradient_clip_algorithm",
    "gradient_clip_val",
    "log_every_n_steps",
    "max_epochs",
    "num_sanity_val_steps",
    "precision",
    "val_check_interval",
)
"""What of a Trainer's options tells where a run's time goes."""


@dataclass(frozen=True)
class TrainerRun:
    """What does not change from a run's setup to its end."""

    trainer: Any
    """A weak proxy; None where the profiler is used without a Trainer."""
    id: str
    """The same on all ranks, and for all stages of the run."""
    rank: int
    local_rank: int
    """On its host."""
    world_size: int
    folder: Path
    """Where traces go unless the user said so."""

    def session(
        self,
        options: RecordingOptions,
        *,
        name: str | None,
        phases: Mapping[str, str],
        stage: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> RecordingSession:
        """That of a recorder within the run; `settings` are the Trainer's."""
        return RecordingSession(
            options,
            name=name,
            stage=stage,
            rank=self.rank,
            local_rank=self.local_rank,
            world_size=self.world_size,
            phases=phases,
            run_id=self.id,
            trainer=settings,
        )


def run_of(trainer: Any, log_dir: str | None) -> TrainerRun:
    """The run that `trainer` begins; `log_dir` as Lightning passes it to `Profiler.setup`.

    To be called once a run on every rank, as Lightning does: the ranks agree on an id by counting their runs.
    """
    return TrainerRun(
        trainer=trainer if trainer is None else weakref.proxy(trainer),
        id=process.new_run_id(),
        rank=int(getattr(trainer, "global_rank", 0)),
        local_rank=int(getattr(trainer, "local_rank", 0)),
        world_size=int(getattr(trainer, "world_size", 1)),
        folder=_folder(trainer, log_dir),
    )


def options_of(trainer: Any) -> dict[str, Any]:
    """The options of a Trainer that are set, by name; nothing where there is no Trainer."""
    found: dict[str, Any] = {}
    for name in _OPTIONS:
        with suppress(Exception):  # a name that this Lightning lacks, or a Trainer that is gone
            value = getattr(trainer, name)
            if value is not None:
                found[name] = value
    return found


def progress_of(trainer: Any, first_batch: int) -> dict[str, Any]:
    """Where fit stands as the batch of this number begins: the step that loggers write then; nothing if unknown."""
    with suppress(Exception):
        # Loggers get the number of batches after which an optimizer stepped, however many optimizers there are.
        stepped = getattr(trainer.fit_loop.epoch_loop, "_batches_that_stepped", None)
        return {"first_batch": first_batch, "global_step": trainer.global_step if stepped is None else stepped}
    return {}


def _folder(trainer: Any, log_dir: str | None) -> Path:
    """The logger's folder; without a logger `log_dir` is the folder of the whole project, so a folder in it.

    A folder that is a URL (`s3://…`) cannot be recorded to.
    """
    if log_dir and getattr(trainer, "loggers", None) and "://" not in str(log_dir):
        return Path(log_dir)
    root = str(getattr(trainer, "default_root_dir", None) or ".")
    return Path(DEFAULT_FOLDER) if "://" in root else Path(root) / DEFAULT_FOLDER


class SanityCheck:
    """The actions of a run's sanity check that say where it stands, as they are handled."""

    def __init__(self) -> None:
        self.is_over = False
        """Training has begun."""
        self._begun_ns = 0
        self._until_ns = 0
        self._own_ns = 0

    def note(self, start_ns: int, end_ns: int) -> None:
        """Recording was busy with such an action from `start_ns` to `end_ns`; it opens windows then, and saves them."""
        if self._begun_ns:
            self._own_ns += end_ns - start_ns
        else:
            self._begun_ns = end_ns
        self._until_ns = end_ns

    @property
    def duration_ns(self) -> int:
        """From the first to the last of the actions; 0 where there was no check."""
        return max(self._until_ns - self._begun_ns - self._own_ns, 0)


FINDINGS = 3
FEWEST_ROWS = 3
MOST_ROWS = 12
"""Of what fits a tall screen: more is for the report."""
_HEAD = {"verdict", "run", "time", "phases"}


def summary(
    profile: Profile, *, rows: int | None = None, sort: str | None = None, width: int = 100, height: int = 24
) -> str:
    """The summary as text, ending in a newline.

    Args:
        profile: of the run.
        rows: of the table; None for what fits the screen, 0 for all.
        sort: a key of the table of lines; None for its own.
        width: of the screen in cells.
        height: of the screen in lines; that of the shell's prompt is left free.
    """
    styles = Styles(color=False)  # it goes through a logger or into a file
    width = max(MIN_WIDTH, width)
    by = "line" if profile.lines else "operator"
    head = [entry for entry in header(profile, by) if entry[0] in _HEAD]
    if profile.memory.failure is not None:
        head += memory_entries(profile)
    top = list(entries_text(head, width, styles))
    found = profile.findings
    below = [cut_end(finding_words(finding, profile), width) for finding in found[:FINDINGS]]
    below = below or list(entries_text([("advice", without_findings(profile))], width, styles))
    below += ["", *_commands(profile, len(found))]
    ordered = table(by).rows(profile, sort=sort if by == "line" else None)
    if rows is None:
        room = height - 1 - len(top) - _AROUND
        if not found and room - len(below) < FEWEST_ROWS:
            below = below[-1:]
        rows = min(max(room - len(below), FEWEST_ROWS), MOST_ROWS)
    shown, rest = (ordered[:rows], ordered[rows:]) if rows else (ordered, [])
    middle = render(columns(by, shown, rest, profile, sort=sort, width=width, styles=styles), width)
    return "\n".join([*top, "", *middle, "", *below]) + "\n"


_AROUND = 6
"""Titles, up to three rows for what has no line, and blank lines."""


def _commands(profile: Profile, found: int) -> list[str]:
    path = shlex.quote(printable(short_path(profile.trace.path)))
    more = f"{found - FINDINGS:,} more findings, " if found > FINDINGS else ""
    return [f"more: {more}all lines, figures and advice: deepscope report {path}"]


def summarize(windows: Mapping[Stage, StageWindows], *, main: str, rows: int | None, sort: str | None) -> str:
    """The newest window of the stage `main`; "" where nothing was recorded.

    The summary is a service at the end of a training run, so a trace that cannot be read costs a line of text.
    """
    recorder = _newest([stage for name, stage in windows.items() if name.value == main] or list(windows.values()))
    if recorder is None:
        return ""
    try:
        profile = recorder.profile
        if profile is None:
            return ""
        width, height = shutil.get_terminal_size((100, 24))
        text = "\n" + summary(profile, rows=rows, sort=sort, width=width, height=height - 1)
        return text + _of_validation(windows, profile, width) if main == Stage.FIT.value else text
    except Exception as error:  # noqa: BLE001  the trace is safe, and the run has just ended well
        return f"DeepScope: no summary of {recorder.traces[-1]}: {error!r}\n"


def _of_validation(windows: Mapping[Stage, StageWindows], fit: Profile, width: int) -> str:
    """What was found in the fit's validation, if it was recorded; "" for nothing."""
    recorder = _newest([windows[Stage.VALIDATE]] if Stage.VALIDATE in windows else [])
    profile = None if recorder is None else recorder.profile
    text = "" if profile is None else evaluation_text(profile, fit, width=width)
    return f"\n{text}" if text else ""


def _newest(stages: Sequence[StageWindows]) -> Recorder | None:
    recorders = [recorder for stage in stages for recorder in stage.recorders if recorder.traces]
    return recorders[-1] if recorders else None
