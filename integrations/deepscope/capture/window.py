"""One recording window: torch's profiler, the line scopes within it and the marks of its steps."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

from deepscope.capture import notices, process_identity, torch_compat
from deepscope.capture.annotations import Annotations, warm_up
from deepscope.capture.compiled.graphs import CompiledRecord, GraphWatch
from deepscope.capture.counters.sampler import Counted, Sampler
from deepscope.capture.lines import LineRecord, LineRecorder
from deepscope.capture.lines.scopes import make_pair
from deepscope.capture.machine_use import EndMemory, MachineWatch
from deepscope.capture.options import RecordingOptions
from deepscope.capture.process_hooks.live_objects import LivingObjects
from deepscope.capture.process_hooks.open_recorders import GiveWay, abandoned_in_children
from deepscope.capture.process_hooks.threads import at_thread_end
from deepscope.capture.window_memory import MemoryHistory, MemorySurveys
from deepscope.capture.workers import WorkerClocks, WorkerTiming
from deepscope.errors import RecorderError
from deepscope.trace.format.header import LineAccount, MachineUse
from deepscope.trace.format.process_tables import MemoryAccount
from deepscope.trace.format.span_names import WINDOW_NAME, clock_name, step_name

_TAKEN = "another torch profiler is running in this process, and torch has room for one; stop it first"
_BROKEN_INTO = "another torch profiler was started on another thread, and torch has room for one; the window is lost"
_NOT_BOTH = (
    "threads that you start yourself are not recorded, although all_threads=True: torch drops its memory events when "
    "it records all threads, and profile_memory=True asks for these"
)
_CLOCK_READINGS = 8
_NO_LINES = "lines are not recorded: their recording could not be started"


class _State(Enum):
    NEW = auto()
    PREPARED = auto()
    RECORDING = auto()
    ENDED = auto()


class Window:
    """Recording from `begin` to `end`, then `export`; what each costs the training thread is kept in `cost_ns`.

    `give_way` is called when another torch profiler is about to start, and `thread_ends` as the thread that opened the
    window ends; each must end the window or discard it.
    """

    def __init__(
        self,
        options: RecordingOptions,
        lines: LineRecorder | None,
        workers: WorkerClocks | None = None,
        give_way: Callable[[], None] = lambda: None,
        *,
        counters: Sampler | None = None,
        thread_ends: Callable[[], None] = lambda: None,
    ) -> None:
        self.line_record = LineRecord()
        """What the scopes stand for; filled in by `end`."""
        self.annotations: Annotations | None = None
        self.annotation_names: dict[str, str] = {}
        """Name in torch's recording → what it stands for; filled in by `end`."""
        self.compiled = CompiledRecord()
        """What ran of torch.compile's graphs; filled in by `end`."""
        self.cost_ns: dict[str, int] = {}
        self.machine: MachineUse | None = None
        """What else used the machine; filled in by `end`."""
        self.clock_readings: list[tuple[int, int]] = []
        """The host's clock before and after each of some spans as the window began, in nanoseconds since the epoch."""
        self.steps = 0
        self.all_threads: bool | None = None
        """Whether torch records all threads; known from `begin` on, None where torch cannot tell."""
        self.objects: LivingObjects | None = None
        """What lived in the warm-up; None for a window without one."""
        self.step_name = ""
        """The name of the step begun last."""
        self.has_begun_step = True
        """Whether what came since the last whole step is one, too, if there was work."""
        self.worker_timings: Callable[[], list[WorkerTiming]] = list
        """Collects what data-loader workers report of this window; set by `end`."""
        self.counted: Callable[[], Counted] = Counted
        """Gives what was counted of the machine; set by `end`."""
        self._state = _State.NEW
        self._machine: MachineWatch | None = None
        self._end_memory: EndMemory | None = None
        self._lines = lines
        self._workers = workers
        self._counters = counters
        self._watch = GraphWatch() if options.compiled_lines else None
        self._profiler = _torch_profiler(options)
        self._give_way = GiveWay(give_way)
        self._memory = MemorySurveys() if options.profile_memory else None
        self.memory_history = MemoryHistory() if options.memory_snapshot else None
        """Whose snapshot is to lie beside the trace; None unless it is recorded."""
        self.thread = 0
        """The number of the one that opened the window."""
        self._thread_ends = thread_ends
        self._forget_thread: Callable[[], None] = lambda: None

    @property
    def is_recording(self) -> bool:
        return self._state is _State.RECORDING

    @property
    def may_end_here(self) -> bool:
        """Whether this thread may end it: torch crashes where another one than its own stops a recording.

        A recording of all threads is no thread's own.
        """
        return not self.is_recording or bool(self.all_threads) or threading.get_ident() == self.thread

    def prepare(self) -> None:
        """Let torch set up its tracing; the schedule's warm-up. Raises `RecorderError` beside another profiler."""
        started = time.perf_counter_ns()
        self.objects = objects = LivingObjects()
        profilers, objects.profilers = objects.profilers, []
        if torch_compat.is_taken(living=profilers):
            raise RecorderError(_TAKEN)
        _open_windows.add(self)
        warm_up()
        torch_compat.prepare(self._profiler)
        self._give_way.watch()
        if self._counters is not None:
            self._counters.prepare()
        self._state = _State.PREPARED
        self.cost_ns["prepare"] = time.perf_counter_ns() - started

    def begin(self, step: int | None) -> None:
        """Record from here on; `step` is the number of the step that begins, None for a block without steps (yet)."""
        if self._state is _State.NEW:
            self.prepare()
            self.objects = None
        elif self._is_another_open():  # one that came up since
            raise RecorderError(_TAKEN)
        started = time.perf_counter_ns()
        self.thread = threading.get_ident()
        self._forget_thread = at_thread_end(self._thread_ends)
        self._profiler.start_trace()
        self._state = _State.RECORDING
        self.all_threads = torch_compat.records_all_threads()
        if self._workers is not None:
            self._workers.open_window()
        if self._watch is not None:
            self._watch.start()
        if self._lines is not None:
            self._lines.on_outermost = None if self._memory is None else self._memory.called
            self._lines.prepare()
        if self._memory is not None:
            self._memory.begin()
        if self._counters is not None:
            self._counters.begin()
        if self.memory_history is not None:
            self.memory_history.begin()
        self._machine = MachineWatch()
        self._end_memory = EndMemory(len(process_identity.local_ranks()))
        self.clock_readings = _read_clocks()
        self.annotations = Annotations()
        self._open_step(WINDOW_NAME if step is None else step_name(step))
        # Scopes may be entered only while torch records, and what is done while they are open stands at the user's
        # line. So lines come last here and first in end().
        if self._lines is not None:
            self._lines.start()
        self.cost_ns["start"] = time.perf_counter_ns() - started

    def end_step(self) -> None:
        """The step has ended: mark it at once, since what the recorder does from here on is not part of it."""
        if self._lines is not None:
            self._lines.mark_own_work()
        if self.annotations is not None and torch_compat.is_recording():
            self.annotations.pop(self.step_name)

    def next_step(self, step: int) -> None:
        """The step before has ended and `step` begins; raises `RecorderError` where another profiler broke in."""
        if not torch_compat.is_recording():
            raise RecorderError(_BROKEN_INTO)
        self.end_step()
        self.steps += 1
        if self._memory is not None:
            self._memory.step()
        if self._watch is not None:
            self._watch.look()
        if self._lines is not None:
            self._lines.next_step()
            self._lines.mark_own_work()
        self._open_step(step_name(step))

    def shortage(self) -> tuple[int, int] | None:
        """The bytes that its end may take and those that are free, where these are too few to go on."""
        return None if self._end_memory is None else self._end_memory.shortage()

    def end(self) -> None:
        """Record no longer; hooks and scopes are gone whatever fails here. Only where it `may_end_here`.

        Raises `RecorderError` where another torch profiler was started on another thread meanwhile: that one is left
        as it is, and there is nothing to export.
        """
        started = time.perf_counter_ns()
        self.end_step()
        _open_windows.discard(self)
        self._forget_thread()
        annotations, self.annotations = self.annotations, None
        with ExitStack() as last_first:
            if self.memory_history is not None:
                last_first.callback(self.memory_history.end)
            last_first.callback(self._stop_torch, started)
            last_first.callback(self._give_way.rest)
            last_first.callback(self._stop_watching)
            if self._lines is not None:
                self._stop_lines(self._lines)
            self._stop_counting()
            if self._machine is not None:
                self.machine = self._machine.end()
            if self._workers is not None:
                self.worker_timings = self._workers.end_window()
            if self._memory is not None:
                self._memory.end()
            if annotations is not None:
                annotations.close_all()
                self.annotation_names = annotations.names

    def _stop_counting(self) -> None:
        if self._counters is not None:
            self.counted = self._counters.end()

    @property
    def memory(self) -> MemoryAccount | None:
        """Who held memory, with the numbers of spans in place of times; None unless it is recorded."""
        return None if self._memory is None else self._memory.account

    def fail(self, error: BaseException) -> None:
        """An exception ends the run, and with it the window."""
        if self._memory is not None and self.is_recording:
            self.end_step()
            self._memory.fail(error)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self.compiled = self._watch.stop()

    def _stop_lines(self, lines: LineRecorder) -> None:
        record = lines.stop()
        if record.account == LineAccount():
            record = replace(record, account=LineAccount(warnings=[_NO_LINES]))
            notices.warn(_NO_LINES)
        self.line_record = record

    def _stop_torch(self, started: int) -> None:
        self._state = _State.ENDED
        is_another = torch_compat.thread_is_taken() and self._is_another_open()
        if is_another or not torch_compat.is_recording():
            self._let_go()
            raise RecorderError(_BROKEN_INTO)
        self._profiler.stop_trace()
        self.cost_ns["stop"] = time.perf_counter_ns() - started

    def discard(self) -> None:
        """Leave torch as it was before, and forget what was recorded.

        A profiler that was prepared and never started would spoil the next one.
        """
        if self.is_recording:
            self.end()
        elif self._state is _State.PREPARED:
            self._state = _State.ENDED
            _open_windows.discard(self)
            self._give_way.rest()
            self._stop_counting()
            if not self._is_another_open():
                self._profiler.start_trace()
                self._profiler.stop_trace()
        self._let_go()

    def take_hooks_out(self) -> None:
        """On a thread that may not end it: leave nothing at work but torch's recording."""
        if self._lines is not None:
            self._lines.let_go()
        if self._memory is not None:
            self._memory.abandon()

    def abandon(self) -> None:
        """In a forked child: the recording stays with the parent, and torch is free for the child's own."""
        self._give_way.rest()
        if self._counters is not None:
            self._counters.abandon()
        if self._memory is not None:
            self._memory.abandon()
        self._stop_watching()
        if self.is_recording:
            torch_compat.leave_recording_to_parent()
        self._state = _State.ENDED
        self._let_go()

    def _is_another_open(self) -> bool:
        way = self._give_way
        return not way.is_giving_way and way.may_be_another and torch_compat.is_taken(self._profiler)

    def _let_go(self) -> None:
        """Forget torch's profiler, so that nobody takes it for one that still records, and all of its events with it.

        It is part of a cycle, which would keep them until garbage is collected: for good, where that is off.
        """
        self._profiler.profiler = None

    def export(self, path: Path) -> None:
        """Write torch's own trace, uncompressed, and forget its events, also where that fails.

        torch holds the GIL meanwhile, so a thread would gain nothing.
        """
        started = time.perf_counter_ns()
        try:
            self._profiler.export_chrome_trace(str(path))
        finally:
            self._let_go()
        self.cost_ns["export"] = time.perf_counter_ns() - started

    def _open_step(self, name: str) -> None:
        self.step_name = name
        if self.annotations is not None:
            self.annotations.push_step(name)


def _read_clocks() -> list[tuple[int, int]]:
    """Marks some moments, 2 µs each. The closest pair will count: the thread may be interrupted in the others."""
    readings = []
    for number in range(_CLOCK_READINGS):
        enter, leave = make_pair(clock_name(number))
        before = time.time_ns()
        enter()
        readings.append((before, time.time_ns()))
        leave()
    return readings


def _with_cpu(activities: Iterable[Any] | None) -> list[Any] | None:
    """The activities asked for and the CPU's, without which there are neither lines nor launches."""
    if activities is None:
        return None
    given = list(activities)
    groups = {group for item in given for group in (item if isinstance(item, dict) else (item,))}
    return given if ProfilerActivity.CPU in groups else [ProfilerActivity.CPU, *given]


def _torch_profiler(options: RecordingOptions) -> Any:
    config = options.experimental_config
    if config is None:
        all_threads = options.all_threads
        if options.profile_memory:
            if all_threads:
                notices.warn(_NOT_BOTH)
            all_threads = False
        elif all_threads is None:
            all_threads = torch_compat.all_threads_are_safe()
        config = torch_compat.experimental_config(
            all_threads=all_threads, with_stack=options.with_stack, sync_events=options.sync_events
        )
    observer = options.execution_trace_observer  # a keyword from torch 2.3 on
    newer = {} if observer is None else {"execution_trace_observer": observer}
    return torch_profile(
        activities=_with_cpu(options.activities),
        record_shapes=options.record_shapes,
        profile_memory=options.profile_memory,
        with_stack=options.with_stack,
        with_flops=options.with_flops,
        with_modules=options.with_modules,
        experimental_config=config,
        **newer,
    )


_open_windows: weakref.WeakSet[Window] = abandoned_in_children()
"""Those that are prepared or open."""
