"""What recording has cost a window so far, and what it may cost: where that is passed, detail is lowered."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from time import perf_counter_ns

from deepscope.capture.lines.calibration import CostSamples, HookWork, RunClock
from deepscope.capture.lines.frames import Stack
from deepscope.capture.lines.scopes import OFTEN, SILENT, Pair, Slot, make_pair, sequence_number
from deepscope.capture.lines.table import LINE, MODULE, ScopeTable
from deepscope.trace.format.span_names import MOMENT_NAME, late_name

_LONG_NS = 4_000
"""Each of so many nanoseconds of work that is done once counts as a happening."""
_GRACE_NS = 50_000_000
"""Nobody minds so much, and a program may begin with its costliest lines."""
_EVERY = 4096
"""Entries between two looks at what they cost."""
_SCARCE = 0.6
"""The part of `max_entries` from which on the costliest lines give way, so that the last entry is never used."""
_SCARCITY = 25
"""Graces beyond the limit for each part of `max_entries` used past `_SCARCE`: ten when all are used."""


@dataclass(frozen=True)
class Limits:
    """What recording lines may cost a window before detail is lowered."""

    max_slowdown: float = 2.0
    """Times as long as without lines."""
    max_entries: int = 250_000
    """Scopes; torch needs 5 µs, 1.2 kB of memory and 15 bytes of file for each when the window ends."""


class OverheadBudget:
    """The costs of one window, over all its threads: they hold the interpreter's lock one after another.

    `spend` counts entries in passing; where `is_due` says so, `look` counts and weighs exactly.
    """

    def __init__(self, table: ScopeTable, costs: CostSamples, limits: Limits) -> None:
        self._table = table
        self.costs = costs
        self._limits = limits
        self._clock = RunClock()
        self._spent = 0
        self._every = min(_EVERY, limits.max_entries // 16)
        self._next_look = self._every
        self._set_up_ns = 0
        """Time of what is done once for a piece of code, or at a look."""
        self._set_ups = 0
        """How often something was."""
        self.alone: list[Callable[[], int]] = []
        """One function a thread, which counts the calls of code without scopes that reached a hook."""
        self.silent = 0
        """Runs of libraries' lines that hold no operator, and had no scope."""
        self.switched_off: Callable[[], int] = int
        """Counts instructions whose events were switched off."""
        self.quiet = 0
        """Runs of lines past their budget that had no scope."""
        self.trials = 0
        """Runs of lines that were on trial."""
        self.started = 0
        """Frames of the user's functions that started or went on."""
        self.modules = 0
        """Calls of modules."""
        self.unpaid = 0
        """Happenings whose cost no mark in the recording tells yet, long ones as several."""
        self._paid = (0,) * 8
        self.is_due = False
        self.is_scarce = False
        """Whether it is the number of scopes that runs out, and not the time."""
        self._last_cost = 0
        self._last_moment = 0

    def spend(self, entries: int) -> None:
        """So many entries were granted, or one was made."""
        self._spent += entries
        if self._spent >= self._next_look:
            self.is_due = True

    def add_set_up(self, duration_ns: int) -> None:
        """Something was done once for a piece of code, or at a look, and took so long."""
        self._set_ups += 1
        self._set_up_ns += duration_ns
        self.unpaid += 1 + duration_ns // _LONG_NS

    def look(self) -> float:
        """How far the costs are beyond what they may be: at most 0 where they are not, 1 by a whole grace."""
        self.is_due = False
        self._next_look = self._spent + max(self._every, 2 * len(self._table.slots))
        self.costs.begin_burst()
        cost, moment = self._lasting_ns(), self._clock.now_ns()
        recent_cost, recent = cost - self._last_cost, moment - self._last_moment
        self._last_cost, self._last_moment = cost, moment
        lines = self._entries(LINE)
        self.is_scarce = lines > self._limits.max_entries * _SCARCE
        if self.is_scarce:
            return _SCARCITY * (lines / self._limits.max_entries - _SCARCE)
        share = self._limits.max_slowdown - 1
        if share == math.inf or recent_cost <= share * max(recent - recent_cost, 0):
            return 0.0  # It was expensive once and is not any more.
        cost += self._once_ns()
        return (cost - _GRACE_NS - share * max(moment - cost, 0)) / _GRACE_NS

    def pay(self) -> int:
        """Nanoseconds that recording has cost since it was last asked, beside what entries with a scope cost."""
        costs, entry_ns = self.costs, self.costs.of(HookWork.ENTRY)
        now = (
            self.started, self.quiet, self.trials, self.silent, self.modules, self.left_alone, self.switched_off(),
            self._set_up_ns,
        )  # fmt: skip
        each = (
            2 * costs.of(HookWork.CALL),
            costs.of(HookWork.QUIET),
            max(costs.of(HookWork.TRIAL) - entry_ns, 0),
            costs.of(HookWork.SILENT),
            costs.of(HookWork.MODULE),
            costs.overhead.call_ns,
            costs.overhead.off_ns,
            1,
        )
        before, self._paid, self.unpaid = self._paid, now, 0
        return sum((count - old) * cost for count, old, cost in zip(now, before, each, strict=True))

    def mark(self) -> tuple[int, int, int, int]:
        """Before a callback is timed: what `work_since` compares with."""
        return self.quiet, self.trials, self._set_ups, self.silent

    def work_since(self, mark: tuple[int, int, int, int]) -> HookWork | None:
        """What the one callback since `mark` did; None where it did something that is timed by itself."""
        quiet, trials, set_ups, silent = mark
        if self._set_ups > set_ups:
            return None
        if self.trials > trials:
            return HookWork.TRIAL
        if self.silent > silent:
            return HookWork.SILENT
        return HookWork.QUIET if self.quiet > quiet else HookWork.ENTRY

    @property
    def left_alone(self) -> int:
        """Calls of code without scopes that reached a hook."""
        return sum(count() for count in self.alone)

    @property
    def share_on_core(self) -> float:
        """Of the time in which the window's thread could run, the part in which it had a core."""
        return self._clock.share_on_core()

    @property
    def calls(self) -> int:
        """Calls of the user's functions that reached a hook."""
        return sum(function.calls for function in (*self._table.functions.values(), *self._table.dropped.values()))

    @property
    def cost_ns(self) -> int:
        """What all entries and calls have cost."""
        return self._lasting_ns() + self._once_ns()

    def _lasting_ns(self) -> int:
        costs, lines, modules = self.costs, self._entries(LINE), self._entries(MODULE)
        return (
            max(lines - self.trials, 0) * costs.of(HookWork.ENTRY)
            + self.trials * costs.of(HookWork.TRIAL)
            + self.quiet * costs.of(HookWork.QUIET)
            + self.silent * costs.of(HookWork.SILENT)
            + modules * costs.of(HookWork.MODULE)
            + max(2 * self.calls - modules, 0) * costs.of(HookWork.CALL)
            + self.left_alone * costs.overhead.call_ns
        )

    def _once_ns(self) -> int:
        return self.switched_off() * self.costs.overhead.off_ns + self._set_up_ns

    def _entries(self, kind: int) -> int:
        rows = zip(self._table.slots, self._table.rows, strict=False)  # another thread may just be adding one
        return sum(slot.opened for slot, row in rows if row.kind == kind)


OPERATOR_OPENINGS = 1.5
"""Openings of a scope that the shortest operator takes, less what an opening may vary by."""
_OWN_WORK = 1.5 if sys.version_info >= (3, 11) else 2.0
"""Openings of a scope that the hooks' own work in a stretch takes, unless a shorter stretch was seen."""
TRIAL_RUNS = 64
"""Runs on trial."""
_REVIEW = 256
"""Quiet runs between two judgements of whether the line holds operators."""
_EARLIER_NS = 600
"""Torch's clock is read up to 500 ns after ours, and the hook alone keeps twice this between two lines."""
_LIBRARY_TRIAL = 6
"""Runs on trial of a library's line. In the first one everything takes long; of the others half must."""
_LIBRARY_LONG = 1.5
"""Thresholds that a stretch of a library's line must last: what Python itself does there takes long enough for one."""
_LIBRARY_TRIALS, _BETWEEN_TRIALS = 3, 32
"""Trials that a library's line must pass, and its runs between two: Python is slow until it has run for a while."""
_OFTEN_MEASURED = 64
"""Scopes on trial after which not each of them, but one in eight, sets the threshold anew."""
_TRIES = 8
"""Attempts to mark a moment without an interruption."""


class LineDetail(Enum):
    """What becomes of one run of a line."""

    NORMAL = auto()
    TRIAL = auto()
    QUIET = auto()
    SILENT = auto()
    """A library's line that holds no operator: no scope, whatever it does."""


class QuietLines:
    """The judgement on lines past their budget, for one window; `dispatch_ns` is what calling a hook takes at least."""

    def __init__(self, budget: int, dispatch_ns: int, overhead_budget: OverheadBudget) -> None:
        self._budget = budget
        self._overhead_budget = overhead_budget
        self._dispatch_ns = dispatch_ns
        self._shortest_ns = 1 << 60
        self._shortest_stretch_ns = 1 << 60
        self._taken_ns: deque[int] = deque(maxlen=31)
        self._opened = 0
        """Scopes on trial."""
        self._threshold_ns = 0
        self._marks: list[Pair] = []
        """Spans that mark a moment, closed; each thread takes one out while it uses it."""

    def judge(self, slot: Slot) -> LineDetail:
        """What becomes of a run of `slot`, for which nothing is left."""
        if slot.left < SILENT:
            return LineDetail.SILENT
        slot.left = 0
        if slot.is_unproven:
            return self._judge_library(slot)
        if slot.reserve > 0:
            return self._grant(slot)
        is_due = slot.judged == TRIAL_RUNS if slot.judged <= TRIAL_RUNS else slot.judged % _REVIEW == 0
        if is_due and slot.long * OFTEN >= min(slot.judged, _REVIEW):
            slot.holds = True
            slot.reserve = self._budget
            slot.judged = slot.long = 0
            return self._grant(slot)
        if is_due:
            slot.holds = False
            slot.long = 0
        self._overhead_budget.spend(1)
        self._overhead_budget.unpaid += 1
        slot.judged += 1
        if slot.judged <= TRIAL_RUNS:
            slot.granted += 1
            self._overhead_budget.trials += 1
            return LineDetail.TRIAL
        slot.missed += 1
        self._overhead_budget.quiet += 1
        return LineDetail.QUIET

    def _judge_library(self, slot: Slot) -> LineDetail:
        if slot.judged >= _LIBRARY_TRIAL:
            if 2 * slot.long >= _LIBRARY_TRIAL - 1:
                slot.trials += 1
                if slot.trials == _LIBRARY_TRIALS:
                    slot.prove(self._budget)
                    return self._grant(slot)
                slot.judged = slot.long = 0
                slot.granted += _BETWEEN_TRIALS
                slot.left = _BETWEEN_TRIALS - 1
                self._overhead_budget.spend(_BETWEEN_TRIALS)
                return LineDetail.NORMAL
            slot.silence()
            slot.left -= 1
            return LineDetail.SILENT
        self._overhead_budget.spend(1)
        self._overhead_budget.trials += 1
        slot.judged += 1
        slot.granted += 1
        return LineDetail.TRIAL

    def _grant(self, slot: Slot) -> LineDetail:
        self._overhead_budget.spend(slot.grant())
        slot.left -= 1
        return LineDetail.NORMAL

    def open_on_trial(self, pair: Pair) -> None:
        """Open a scope, and learn from it what that takes on this machine."""
        started = perf_counter_ns()
        pair[0]()
        taken = perf_counter_ns() - started
        self._shortest_ns = min(self._shortest_ns, taken)
        self._taken_ns.append(taken)
        self._opened += 1
        if self._opened > _OFTEN_MEASURED and self._opened & 7:
            return
        # The usual time and not the shortest: on a busy machine stretches are longer, too.
        usual = sorted(self._taken_ns)[len(self._taken_ns) // 2]
        own = min(self._shortest_stretch_ns, int(self._shortest_ns * _OWN_WORK) + self._dispatch_ns)
        self._threshold_ns = int(usual * OPERATOR_OPENINGS) + own

    def settle(self, stack: Stack) -> None:
        """The top frame hands over (to its next line, callee or caller): judge its stretch, record it if need be."""
        top = stack[-1]
        slot = top.quiet
        if slot is None:
            return
        stretch_ns = perf_counter_ns() - top.since
        self._shortest_stretch_ns = min(self._shortest_stretch_ns, stretch_ns)
        if stretch_ns >= self._threshold_ns:
            slot.long += 1
            if slot.is_unproven:
                slot.long -= slot.judged == 1 or stretch_ns < self._threshold_ns * _LIBRARY_LONG
            elif top.pair is None:
                slot.late += 1
                self._record_late(stack, top.since)
        if slot.is_unproven and sequence_number() != top.sequence:
            self.prove(stack)
        top.since = perf_counter_ns()

    def prove(self, stack: Stack) -> None:
        """What holds operators is about to run: the lines of libraries that are on trial in this stack hold them."""
        for entry in stack:
            slot = entry.quiet
            if entry.is_special and slot is not None and slot.is_unproven:
                slot.prove(self._budget)
                slot.is_certain = True
                entry.function.holds = True
                entry.quiet = None

    def _record_late(self, stack: Stack, since: int) -> None:
        quiet = [entry for entry in stack if entry.is_special and entry.pair is None]
        scopes = [entry.quiet.id for entry in quiet if entry.quiet is not None]
        pair = make_pair(late_name(scopes, self._mark_moment() - since + _EARLIER_NS))
        pair[0]()
        pair[1]()

    def _mark_moment(self) -> int:
        """Put a span into the recording, and return its time by our own clock, so that the clocks can be compared."""
        mark = self._marks.pop() if self._marks else make_pair(MOMENT_NAME)
        for _ in range(_TRIES):
            moment = perf_counter_ns()
            mark[0]()
            taken = perf_counter_ns() - moment
            mark[1]()
            if taken <= 2 * self._shortest_ns:
                break  # else the thread was interrupted, before the span's clock was read or after
        self._marks.append(mark)
        return moment
