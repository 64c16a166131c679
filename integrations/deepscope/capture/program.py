"""A program run as `python program.py` would run it, and recorded without a change to it."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from deepscope.capture.notices import warn
from deepscope.capture.on_demand.protocol import ControlRequest
from deepscope.capture.on_demand.start import OnDemand
from deepscope.errors import ProgramError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.callback import StepCallback
    from deepscope.capture.options import OptionKeywords, RecordingOptions
    from deepscope.capture.whole_run.further_windows import EvaluationWindow
    from deepscope.capture.whole_run.run_watch import RunWatch
    from deepscope.capture.workers import WorkerClocks

_ID = "0"


class Span:
    """A context manager that records `seconds` of the block, from `delay` seconds behind its begin on."""

    def __init__(
        self,
        folder: Path,
        delay: float,
        seconds: float,
        *,
        filename: str | None = None,
        **options: Unpack[OptionKeywords],
    ) -> None:
        self.traces: list[Path] = []
        self._on_demand = OnDemand(folder, filename=filename, **options)
        self._idle = self._on_demand.idle_recorder
        self._delay = delay
        self._seconds = seconds
        self._is_over = threading.Event()
        self._is_saved = threading.Event()
        self._refusal = ""
        """Why the window was not opened, as the recorder says."""
        self._is_open = threading.Event()
        self._idle.on_open = self._is_open.set
        self._idle.on_over = self._tell_over

    def __enter__(self) -> Span:
        import deepscope.capture.recorder  # noqa: F401  not when it is time

        self._on_demand.count_run()
        threading.Thread(target=self._run, name="deepscope-span", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._idle.finish()
        self._on_demand.end_run()
        answer = self._idle.answer(ControlRequest("look"))
        if answer.state == "idle":
            ended = f"the program ended before the {self._delay:g} s of --after were over"
            warn(f"nothing was recorded: {self._refusal or ended}")
            return
        self._is_saved.wait()
        self.traces += [Path(one) for one in self._idle.answer(ControlRequest("look")).traces]

    def _tell_over(self) -> None:
        self._is_saved.set()
        self._is_open.set()

    def _run(self) -> None:
        if self._is_over.wait(self._delay):
            return
        answer = self._idle.answer(ControlRequest("now", id=_ID, warmup=0))
        if not answer.accepted:
            self._refusal = answer.problem
            return
        self._is_open.wait()
        if not self._is_over.wait(self._seconds):
            self._idle.answer(ControlRequest("stop", id=_ID))


_RECORDER = "deepscope.capture.recorder"


@dataclass(frozen=True)
class Program:
    """What `python` is told: a file, or a module's name behind `-m`, and the arguments of it."""

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    def prepared(self) -> Callable[[], object]:
        """What runs it; `__main__`, `sys.argv` and the import path are its own from here on.

        Raises `ProgramError` where there is no such file or module, `SyntaxError` for a file that is no Python.
        """
        return self._module() if self.is_module else self._file()

    def _module(self) -> Callable[[], object]:
        sys.path[0] = str(Path.cwd())
        try:
            found = importlib.util.find_spec(self.target)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise ProgramError(f"-m {self.target}: there is no module of this name")

        self._take_over(self.target, found.origin)
        return partial(runpy.run_module, self.target, run_name="__main__", alter_sys=True)

    def _file(self) -> Callable[[], object]:
        path = Path(self.target).resolve()
        if (path / "__main__.py").is_file() or zipfile.is_zipfile(path):
            del sys.path[0]  # the command's own; `run_path` puts this one there
            self._take_over(self.target, str(path))
            return partial(runpy.run_path, str(path), run_name="__main__")
        try:
            code = compile(path.read_bytes(), str(path), "exec")
        except (OSError, ValueError) as error:
            raise ProgramError(f"{self.target}: cannot be read ({getattr(error, 'strerror', None) or error})") from None

        sys.path[0] = str(path.parent)  # in the place of the command's own
        main = self._take_over(self.target, str(path))
        return lambda: exec(code, main.__dict__)  # noqa: S102  the user's own program

    def _take_over(self, name: str, file: str | None) -> ModuleType:
        """Worker processes, pickles and threads look into `__main__`, and the recorder for the project's root."""
        sys.argv = [name, *self.arguments]
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__dict__.update(__file__=file, __cached__=None)
        return main


@dataclass
class Recorded:
    """What became of a program's recording; filled in once the program is over."""

    traces: list[Path] = field(default_factory=list)
    is_first: bool = True
    """Whether this is the first of the ranks that record."""
    is_chosen: bool = True
    """Whether this rank records."""
    is_complete: bool = True
    """Whether the program has ended as it was to; told by whoever runs it, before the recording ends."""


@contextmanager
def record_steps(
    folder: Path, *, filename: str | None = None, may_record_itself: bool = True, **options: Unpack[OptionKeywords]
) -> Iterator[Recorded]:
    """Records steps of whatever runs inside, and yields what the traces come into.

    A step ends with each step of the optimizer that steps first, or of one that goes on in its place; in a program
    without optimizers with each backward pass. Recording begins there. Data-loader workers may start before that, so
    they are let in from the beginning. A program that records itself is left to it, where it `may_record_itself`. A
    rank that is not to record, and knows so from its launcher, pays nothing.
    """
    from deepscope.capture.whole_run.run_watch import RunWatch

    watch = RunWatch()
    from deepscope.capture.compiled.graphs import ProvenanceHold
    from deepscope.capture.naming import check_template, seen_from_here
    from deepscope.capture.options import SCHEDULE_NAMES, checked_options
    from deepscope.capture.process_hooks import optimizer_steps
    from deepscope.capture.workers import armed_clocks

    folder = seen_from_here(folder)  # the program may go to another one before its first step
    checked = checked_options(options)
    check_template(filename)
    recorded = _recorded_by(checked)
    if not recorded.is_chosen:
        yield recorded
        return
    workers = armed_clocks(checked)
    provenance = ProvenanceHold() if checked.compiled_lines else None  # the first step compiles before it is recorded

    chosen = [name for name in SCHEDULE_NAMES if options.get(name) is not None]
    begin = partial(_new_callback, folder, filename, workers, watch, options)
    steps = _OptimizerSteps(watch, begin, may_record_itself=may_record_itself, follows_steps=not chosen)
    stop_listening = optimizer_steps.listen_to_steps(steps.stepped)
    watch.without_steps = steps.evaluated
    watch.listen()
    try:
        yield recorded
    finally:
        stop_listening()
        callback = steps.end(complete=recorded.is_complete)
        watch.close()
        for evaluation in steps.evaluations:
            evaluation.wait()
            recorded.traces += evaluation.traces
        if callback is not None:
            callback.recording.wait()  # the program is over: nobody waits for this rank
            recorded.traces += callback.recording.traces
            recorded.is_first = callback.recording.is_first
        if provenance is not None:
            provenance.release()
        if workers is not None:
            workers.disarm()


class _OptimizerSteps:
    """Steps of a program that optimizers end; the first one begins the recording, unless the program has one."""

    def __init__(
        self, watch: RunWatch, begin: Callable[[], StepCallback], *, may_record_itself: bool, follows_steps: bool
    ) -> None:
        from deepscope.capture.process_hooks.optimizer_steps import LeadingOptimizer

        self._watch = watch
        self._begin = begin
        self._may_record_itself = may_record_itself
        self._follows_steps = follows_steps
        self._leader = LeadingOptimizer()
        self._is_begun = False
        self._callback: StepCallback | None = None
        self.evaluations: list[EvaluationWindow] = []
        """What recorded one, oldest first."""

    def evaluated(self) -> EvaluationWindow | None:
        """Batches of a loader come, and no step is made; None where an optimizer lives that may make one."""
        from torch.optim import Optimizer

        from deepscope.capture.process_hooks.live_objects import live_objects

        if self._is_begun or self._records_itself or live_objects([Optimizer])[0]:
            return None
        self._may_record_itself = False  # the recorder is there now
        window = self._begin().recording.evaluation_window("predict")
        self.evaluations += [] if window is None else [window]
        return window

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has made a step."""
        if not self._leader.leads(optimizer):
            self._watch.train()
            return
        self._watch.count_steps(self._leader.missed)
        if not self._is_begun:
            self._is_begun = True
            self._begin_recording()
        if self._callback is not None:
            self._callback()

    @property
    def _records_itself(self) -> bool:
        """Whether the program does, and is left to it."""
        return self._may_record_itself and _RECORDER in sys.modules

    def _begin_recording(self) -> None:
        if self._records_itself:
            self._watch.close()
            return
        from deepscope.capture import process_identity
        from deepscope.capture.whole_run.run_watch import PausedSteps

        began_ns = perf_counter_ns()
        self._callback = self._begin()
        if process_identity.find_world_size() == 1:  # ranks would have to pause together
            recording = self._callback.recording
            if self._follows_steps:
                recording.follow_steps()
            self._watch.paused = PausedSteps(recording.pause, recording.resume)
        self._watch.give_to_recording(perf_counter_ns() - began_ns)

    def end(self, *, complete: bool) -> StepCallback | None:
        """The program is over; returns what has recorded it, if anything has."""
        self._watch.count_steps(self._leader.missed_at_end)
        if self._callback is not None:
            self._callback.close(complete=complete)
            self.evaluations += [] if self._callback.evaluation is None else [self._callback.evaluation]
        return self._callback


def _new_callback(
    folder: Path,
    filename: str | None,
    workers: WorkerClocks | None,
    watch: RunWatch,
    options: OptionKeywords,
) -> StepCallback:
    from deepscope.capture.callback import StepCallback

    return StepCallback(folder, filename=filename, workers=workers, watch=watch, **options)


@contextmanager
def record_whole(folder: Path, *, filename: str | None = None, **options: Unpack[OptionKeywords]) -> Iterator[Recorded]:
    """Records everything that runs inside, or with `time` so many seconds of it from `after` seconds on.

    Yields what the trace comes into.
    """
    from deepscope.capture.options import checked_options

    recorded = _recorded_by(checked_options(options))
    if not recorded.is_chosen:
        yield recorded
        return
    seconds = options.pop("time", None)
    if seconds is not None:
        span = Span(folder, options.pop("after", 0), seconds, filename=filename, **options)
        try:
            with span:
                yield recorded
        finally:
            recorded.traces += span.traces
        return
    from deepscope.capture.recording import Recording

    recording = Recording(folder, filename=filename, **options)
    try:
        with recording:
            yield recorded
    finally:
        recording.wait()
        recorded.traces += recording.traces
        recorded.is_first = recording.is_first


def _recorded_by(options: RecordingOptions) -> Recorded:
    """Nothing so far, by this rank as its launcher numbers it."""
    from deepscope.capture import process_identity as process
    from deepscope.capture.options import first_rank, is_chosen, warn_if_nobody

    choice, rank = options.rank_choice, process.find_rank()
    warn_if_nobody(choice, rank, process.find_world_size())
    is_unknown = not process.knows_rank()
    return Recorded(
        is_first=rank == first_rank(choice) or is_unknown,
        is_chosen=is_chosen(choice, rank, process.find_local_rank(rank)) or is_unknown,
    )


@contextmanager
def record_on_demand(
    folder: Path, *, filename: str | None = None, control: str = "auto", **options: Unpack[OptionKeywords]
) -> Iterator[Recorded]:
    """Records what `deepscope attach` asks for while something runs inside; those who asked are told of the traces."""
    from deepscope.capture.on_demand.start import on_demand

    with on_demand(folder, filename=filename, control=control, **options):
        yield Recorded()
