"""Marks in the recording of what the line that is open did not do itself: it was off the CPU, or DeepScope recorded."""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns

from deepscope.capture.lines.emit import make_pair
from deepscope.capture.lines.off_cpu import LONG_NS, Pulse, tells_cpu_time
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.running_frame import Stack
from deepscope.capture.lines.thread_stacks import ThreadStacks
from deepscope.trace.format.span_names import recording_name

UNPAID = 32
"""Happenings in the hooks after which a mark tells what they cost: at the line that is open, as most of them were."""

_NEVER_NS = 1 << 62
_LONGEST_MARK_NS = 5_000


class CostMarks:
    """The marks of one window, all of them on its owner's thread."""

    def __init__(self, threads: ThreadStacks, overhead_budget: OverheadBudget, *, are_wanted: bool) -> None:
        self.pulse = Pulse()
        """Of the owner."""
        self.long_ns = LONG_NS if are_wanted and tells_cpu_time() else _NEVER_NS
        """From this length on a stretch between two events of the hooks may have been off the CPU."""
        self._threads = threads
        self._own = threads.own
        self._overhead_budget = overhead_budget
        self._mark_ns = 0
        """What the last mark of `pay` took."""
        self._own_work_since: int | None = None
        """The thread's CPU time, once DeepScope is at its own work and from its last mark on."""

    def note_event(self, stack: Stack) -> None:
        """An event of the hooks on the thread of `stack`, before anything comes of it."""
        if stack is self._own:
            now = perf_counter_ns()
            if now - self.pulse.last >= self.long_ns:
                self.pulse.long(now)
            self.pulse.last = now

    def pay(self, stack: Stack) -> None:
        """Mark in the recording what recording has cost the open line since the last mark."""
        if stack is not self._own or not self._threads.is_open:
            return
        started = perf_counter_ns()
        _mark(self._overhead_budget.pay() + self._mark_ns)
        now = perf_counter_ns()
        self._mark_ns = min(now - started, _LONGEST_MARK_NS)
        begin_stretch(stack, now)

    def begin_own_work(self) -> None:
        """What DeepScope does on the owner from here on is its own work, and no part of the line that is open."""
        self._own_work_since = thread_time_ns()

    def mark_own_work(self) -> None:
        """Mark in the recording what such work has taken since it began, or since the last such mark.

        And for how long the thread was off the CPU: of what comes behind the last step's end the trace tells nothing.
        """
        self.note_event(self._own)
        since, self._own_work_since = self._own_work_since, None
        if since is not None and self._threads.is_open:
            now = thread_time_ns()
            _mark(now - since)
            self._own_work_since = now

    def end_own_work(self) -> None:
        """It is over."""
        self.mark_own_work()
        self._own_work_since = None
        begin_stretch(self._own, perf_counter_ns())


def begin_stretch(stack: Stack, now: int) -> None:
    """What was done up to `now` is the hooks' own, and no part of what the line open in `stack` does."""
    if stack and stack[-1].is_special:
        stack[-1].since = now


def _mark(recording_ns: int) -> None:
    """Put into the recording that it took so long of the open line."""
    enter, leave = make_pair(recording_name(recording_ns))
    enter()
    leave()
