"""Lines past their budget: a run too short to hold an operator gets no scope, any other gets one afterwards.

A line that runs a hundred thousand times would swamp the trace. Yet an operator that runs in it once must be found at
it. Torch keeps no count of operators, but time tells: under a recording each operator opens a span of its own, with
several layers of torch around it. The cheapest operator takes 1.9 times the opening of a bare scope, which is measured
on the spot. The shortest stretch of Python between two events of the hooks is the hooks' own work. A stretch shorter
than these two together holds no operator.

A line whose budget is spent is first put on trial: it keeps its scopes, and the stretches of its runs are timed. Where
one in four is long, the line gets another budget. Otherwise it falls quiet: its short runs leave nothing, and a long
one is recorded when it ends. That is done by a late span (`span_names.py`), which says how long before the last marked
moment the run began, and which quiet callers stand around it. A quiet caller gets its scope after all as soon as
something that it called opens one, so that scopes nest as the calls do.
"""

from __future__ import annotations

import sys
from collections import deque
from enum import Enum, auto
from time import perf_counter_ns

from deepscope.capture.lines.emit import Pair, make_pair, sequence_number
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.running_frame import Stack
from deepscope.capture.lines.table import OFTEN, SILENT, Slot
from deepscope.trace.format.span_names import MOMENT_NAME, late_name

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


class Verdict(Enum):
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

    def judge(self, slot: Slot) -> Verdict:
        """What becomes of a run of `slot`, for which nothing is left."""
        if slot.left < SILENT:
            return Verdict.SILENT
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
            return Verdict.TRIAL
        slot.missed += 1
        self._overhead_budget.quiet += 1
        return Verdict.QUIET

    def _judge_library(self, slot: Slot) -> Verdict:
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
                return Verdict.NORMAL
            slot.silence()
            slot.left -= 1
            return Verdict.SILENT
        self._overhead_budget.spend(1)
        self._overhead_budget.trials += 1
        slot.judged += 1
        slot.granted += 1
        return Verdict.TRIAL

    def _grant(self, slot: Slot) -> Verdict:
        self._overhead_budget.spend(slot.grant())
        slot.left -= 1
        return Verdict.NORMAL

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
            if (
                taken <= 2 * self._shortest_ns
            ):  # else the thread was interrupted, before the span's clock was read or after
                break
        self._marks.append(mark)
        return moment
