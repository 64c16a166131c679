"""`deepscope.profile`: recording of plain PyTorch, as a context manager, a decorator or by hand."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter_ns
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.capture.on_demand.start import tell_step
from deepscope.capture.options import SCHEDULE_NAMES, OptionKeywords, checked_options
from deepscope.capture.process_hooks.open_recorders import own_work
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
from deepscope.capture.whole_run.loader_passes import length_of
from deepscope.capture.whole_run.run_timer import write_account
from deepscope.capture.whole_run.run_watch import RunWatch
from deepscope.capture.workers import WorkerClocks
from deepscope.errors import RecorderError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.records import Profile

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])


class RecordingKeywords(OptionKeywords, total=False):
    """What `Recording` takes besides its folder."""

    total_steps: int | None
    filename: str | None
    workers: WorkerClocks | None
    watch: RunWatch | None


Keywords = TypeVar("Keywords", OptionKeywords, RecordingKeywords)


class Recording:
    """Record a block of code, or some steps of the loop in it, into `folder`.

    With none of `wait`, `warmup`, `active`, `repeat`, `skip_first` and `schedule` the whole block is recorded. Any of
    them makes a schedule, in which the others have the defaults of `RecordingOptions`. `total_steps`: the number of
    steps, where known, so that a short run is recorded, too (`iterate` finds it out from the loader). `filename`: first
    part of the files' names, or a template of all but the time behind it, such as "{program}-{stage}-{rank}"
    (docs/recording.md). `workers`: the clocks in data-loader workers, armed by the caller before these start. `watch`:
    that of the whole run, which began before. All else is an option of `RecordingOptions`.

    Raises `OptionError` for an option that does not exist or has a value that cannot be used, and `NestedProfileError`
    when it starts inside another recording.
    """

    def __init__(
        self,
        folder: str | Path = DEFAULT_FOLDER,
        *,
        total_steps: int | None = None,
        filename: str | None = None,
        workers: WorkerClocks | None = None,
        watch: RunWatch | None = None,
        **options: Unpack[OptionKeywords],
    ) -> None:
        self._scheduled = _is_scheduled(options)
        self._options = checked_options(
            {key: value for key, value in options.items() if value is not None or key not in SCHEDULE_NAMES}
        )
        self._folder = Path(folder)
        self._total_steps = total_steps
        self._name = filename
        self._workers = workers
        self._recorder = self._new_recorder()
        self._watch = watch
        """Of the run since `start`, or since before."""
        self._next_account_ns = 0
        self._is_open = False
        self._site: _CallSite | None = None
        """Where it was started."""

    def _new_recorder(self, first_step: int = 0) -> Recorder:
        return Recorder(
            RecordingSession(self._options, name=self._name),
            Plan(Schedule.of(self._options, self._total_steps)) if self._scheduled else None,
            folder=self._folder,
            first_step=first_step,
            is_abandoned=self._is_abandoned,
            workers=self._workers,
            around_exit=self._around_exit,
        )

    def _is_abandoned(self) -> bool:
        """It is in use as long as the code that started it runs."""
        return self._site is not None and not self._site.may_still_run()

    def start(self) -> Recording:
        """Begin; what `with` does. Raises `NestedProfileError` inside another recording that is in use.

        Where an interrupted cell is run again, the recording that it left open is ended first, and saved as it is.
        """
        if self._is_open and self._is_abandoned():
            self.stop(complete=False)
        open_ones = [one for one in _open_ones if one is not self and not one._recorder.is_stopped]
        watch = self._watch or RunWatch(begins_step=True).listen()  # before windows wrap the same functions
        began_ns = perf_counter_ns()
        try:
            self._recorder.start()
        except BaseException:
            if self._watch is None:
                watch.close()
            raise
        for one in open_ones:
            if one._recorder.is_stopped:  # nobody stops it any more
                one.stop(complete=False)
        if not self._is_open:
            self._site = _CallSite()
            self._next_account_ns = began_ns + _ACCOUNT_INTERVAL_NS
            if self._watch is None:
                watch.give_to_recording(perf_counter_ns() - began_ns)
            if not self._recorder.session.is_chosen:
                watch.close()  # of a rank that does not record
            self._watch = watch
        self._is_open = True
        _open_ones.add(self)
        return self

    @own_work
    def step(self) -> None:
        """The step has ended and the next one begins."""
        tell_step()
        self.advance()

    def advance(self) -> None:
        """What `step` does, where the step is told elsewhere."""
        watch = self._watch
        if watch is None:
            self._recorder.step()
            return
        watch.end_step()
        began_ns = perf_counter_ns()
        self._recorder.step()
        if began_ns > self._next_account_ns:
            write_account(watch.account(), self.traces)
            self._next_account_ns = perf_counter_ns() + _ACCOUNT_INTERVAL_NS
        watch.give_to_recording(perf_counter_ns() - began_ns)

    def pause(self) -> None:
        """Behind `step`: what follows until `resume`, an evaluation or a checkpoint, is part of no step.

        A window that has steps by then is saved with these, and its cycle is over.
        """
        self._give_to_recording(self._recorder.pause)

    def resume(self) -> None:
        """After `pause`: the next step begins."""
        self._give_to_recording(self._recorder.resume)

    def _give_to_recording(self, work: Callable[[], None]) -> None:
        began_ns = perf_counter_ns()
        work()
        if self._watch is not None:
            self._watch.give_to_recording(perf_counter_ns() - began_ns)

    def stop(self, *, complete: bool = True) -> None:
        """End, and return once the traces are written.

        Where there are several ranks, others may wait for this one in a collective: then this waits for a tenth of the
        shortest time-out of any process group, and 5 seconds at most. `wait` waits for as long as it takes.
        """
        watch, self._watch = self._watch, None
        account = watch.account() if watch is not None and self._is_open else None
        self._is_open = False
        _open_ones.discard(self)
        try:
            self._end_recorders(complete=complete)
        finally:
            if watch is not None:
                watch.close()
        write_account(account, self.traces)

    def _end_recorders(self, *, complete: bool) -> None:
        self._recorder.stop(complete=complete)
        self._recorder.wait(self._recorder.patience_s)

    @contextmanager
    def _around_exit(self) -> Iterator[None]:
        """The process ends, and nobody has stopped this recording."""
        watch = self._watch
        account = watch.account() if watch is not None else None
        yield
        if watch is not None:
            watch.close()
        write_account(account, self.traces)

    def wait(self) -> None:
        """Return once the traces of all windows that have ended are written."""
        self._recorder.wait()

    def iterate(self, loader: Iterable[Item]) -> Iterator[Item]:
        """The items of `loader`, each one a step; the time in the loader is the phase `data`.

        Starts and stops the recording where it is not open.
        """
        opens = not self._is_open
        if opens:
            self.start()
        complete, watch = False, self._watch
        assert watch is not None
        batches = watch.open_pass()
        try:
            self._recorder.expect(length_of(loader))
            with self.annotate("deepscope.data"):
                items = iter(loader)
            while True:
                with self.annotate("deepscope.data"):
                    item = next(items, _END)
                if item is _END:
                    break
                watch.fetched(batches)
                yield item
                self.step()
                watch.fetching(batches)
            complete = True
        except GeneratorExit:
            complete = _is_loop_left()
            raise
        finally:
            watch.end_pass(batches)
            if opens:
                self.stop(complete=complete)

    def annotate(self, name: str) -> AbstractContextManager[None]:
        """A span in the trace; `deepscope.data`, `.forward`, `.backward` and `.optimizer` name phases."""
        return self._recorder.annotate(name)

    def add_metadata(self, key: str, value: Any) -> None:
        """Put `value` into the traces; raises `OptionError` unless JSON can say it."""
        self._recorder.add_metadata(key, value)

    @property
    def is_recording(self) -> bool:
        """Whether events are being recorded now."""
        return self._recorder.recording

    @property
    def is_first(self) -> bool:
        """Whether this process is the first of the ranks that record."""
        return self._recorder.session.is_first

    @property
    def traces(self) -> list[Path]:
        """The files written, oldest first."""
        return self._recorder.traces

    @property
    def profile(self) -> Profile | None:
        """The analysed result of the newest trace; None where there is none."""
        return self._recorder.profile

    def __enter__(self) -> Recording:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.fail(error)
        self.stop(complete=error is None)

    def fail(self, error: BaseException | None) -> None:
        """An exception is about to end the run: look what it was about before it lets go of what it holds."""
        if error is not None:
            self._recorder.fail(error)

    def __call__(self, function: Function) -> Function:
        """`function`, each outermost call of it a recording of its own."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise RecorderError(f"{function.__qualname__} is a generator; use deepscope.profile with `with` inside it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_coroutine(*args: Any, **kwargs: Any) -> Any:
                with self._of_call():
                    return await function(*args, **kwargs)

            return recorded_coroutine  # type: ignore[return-value]  # wraps() keeps the signature, as far as it shows

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with self._of_call():
                return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]  # as above

    def _of_call(self) -> AbstractContextManager[object]:
        return nullcontext() if self._is_open else self._afresh()

    def _afresh(self, first_step: int = 0) -> Recording:
        metadata = self._recorder.session.metadata
        self._recorder = self._new_recorder(first_step)
        for key, value in metadata.items():
            self._recorder.add_metadata(key, value)
        return self


def profile(folder: str | Path = DEFAULT_FOLDER, **options: Unpack[RecordingKeywords]) -> Recording:
    """A recording into `folder`, to be entered, put before a function or iterated with; `Recording` has the options."""
    return Recording(folder, **options)


_END: Any = object()
_open_ones: weakref.WeakSet[Recording] = weakref.WeakSet()
_ACCOUNT_INTERVAL_NS = 30_000_000_000
"""What is known of the run is written so often: one that is killed leaves that."""


def with_schedule(options: Keywords) -> Keywords:
    """The options, with the schedule of callbacks where they have none."""
    if not _is_scheduled(options):
        options["wait"] = 1
    return options


def _is_scheduled(options: OptionKeywords) -> bool:
    return any(options.get(key) is not None for key in SCHEDULE_NAMES)


_PACKAGE = "deepscope.capture."
_DROPS = {dis.opmap[name] for name in ("POP_TOP", "POP_ITER") if name in dis.opmap}
"""What `break`, and `return` in a loop, do with what the loop goes through."""
_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class _CallSite:
    """The innermost running frame outside the recorder, kept by its number: the frame itself would keep its tensors."""

    def __init__(self) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
            frame = frame.f_back
        self._number = id(frame)
        self._code = frame.f_code if frame is not None else None
        self._thread = threading.get_ident()

    @property
    def is_of_this_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def may_still_run(self) -> bool:
        """False only on its own thread, where the frame has returned or was left by an exception."""
        if not self.is_of_this_thread or self._code is None or self._code.co_flags & _SUSPENDABLE:
            return True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if id(frame) == self._number and frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False


def _is_loop_left() -> bool:
    """In a generator that is closed: whether the loop around it was left by `break` or `return`, not by an exception.

    Python tells a generator no more than that it is closed, so the loop's own instruction is looked at. Generators in
    between (a progress bar) are closed at the place that they wait at.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_code[frame.f_lasti] in _DROPS:
            return True
        if not frame.f_code.co_flags & _SUSPENDABLE:
            return False
        frame = frame.f_back
    return False
