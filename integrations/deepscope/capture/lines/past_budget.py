"""Lines past their budget: no scope for a run too short to hold an operator, one written afterwards for any other.

A line that runs a hundred thousand times would swamp the trace, and yet an operator that runs in it once must be found
at it. Torch keeps no count of operators, but time tells: under a recording each operator opens a span of its own, and
several layers of torch stand around it. The cheapest take 1.9 times the opening of a bare scope (which is measured on
the spot). So a stretch of Python between two events of the hooks holds none where it is shorter than that and the
shortest stretch together, which is the hooks' own work.

A line whose budget is spent is first put on trial: it keeps its scopes, and the stretches of its runs are timed. Where
one in four is long it gets another budget. Otherwise it falls quiet: its short runs leave nothing, and a long one is
recorded when it ends, by a late span (`scope_names.py`) that says how long before the moment marked last the run began,
and which callers that are quiet, too, stand around it. A quiet caller gets its scope after all as soon as something
that it called opens one, so that scopes nest as the calls do.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from time import perf_counter_ns

from deepscope.capture.lines.emit import Pair, make_pair
from deepscope.capture.lines.ledger import Ledger
from deepscope.capture.lines.running_frame import Stack
from deepscope.capture.lines.table import OFTEN, Slot
from deepscope.trace.format.span_names import MOMENT_NAME, late_name

__all__ = ["QuietLines", "Verdict"]

OPERATOR_OPENINGS = 1.5
"""Openings of a scope that an operator takes at least, with room for what one of them varies by."""
_OWN_WORK = 1.5
"""Openings of a scope that the hooks' own work in a stretch takes at most, where no shorter stretch was seen."""
_TRIAL = 64
"""Runs on trial."""
_REVIEW = 256
"""Quiet runs after which it is judged anew whether the line holds operators."""
_EARLIER_NS = 600
"""Torch's clock is read up to 500 ns after ours, and the hook alone keeps twice this between two lines."""
_TRIES = 8
"""To mark a moment without an interruption."""


class Verdict(Enum):
    """What becomes of one run of a line."""

    NORMAL = auto()
    TRIAL = auto()
    QUIET = auto()


class QuietLines:
    """The judgement on lines past their budget, for one window; `dispatch_ns` is what calling a hook takes at least."""

    def __init__(self, budget: int, dispatch_ns: int, ledger: Ledger) -> None:
        self._budget = budget
        self._ledger = ledger
        self._dispatch_ns = dispatch_ns
        self._shortest_ns = 1 << 60
        self._shortest_stretch_ns = 1 << 60
        self._taken_ns: deque[int] = deque(maxlen=31)
        self._threshold_ns = 0
        self._marks: list[Pair] = []
        """Spans that mark a moment, closed; each thread takes one out while it uses it."""

    def judge(self, slot: Slot) -> Verdict:
        """What becomes of a run of `slot`, for which nothing is left."""
        slot.left = 0
        if slot.reserve > 0:
            return self._grant(slot)
        is_due = slot.judged == _TRIAL if slot.judged <= _TRIAL else slot.judged % _REVIEW == 0
        if is_due and slot.long * OFTEN >= min(slot.judged, _REVIEW):
            slot.holds = True
            slot.reserve = self._budget
            slot.judged = slot.long = 0
            return self._grant(slot)
        if is_due:
            slot.holds = False
            slot.long = 0
        self._ledger.spend(1)
        slot.judged += 1
        if slot.judged <= _TRIAL:
            slot.granted += 1
            self._ledger.trials += 1
            return Verdict.TRIAL
        slot.missed += 1
        self._ledger.quiet += 1
        return Verdict.QUIET

    def _grant(self, slot: Slot) -> Verdict:
        self._ledger.spend(slot.grant())
        slot.left -= 1
        return Verdict.NORMAL

    def open_on_trial(self, pair: Pair) -> None:
        """Open a scope, and learn from it what that takes on this machine."""
        started = perf_counter_ns()
        pair[0]()
        taken = perf_counter_ns() - started
        self._shortest_ns = min(self._shortest_ns, taken)
        self._taken_ns.append(taken)
        # The usual time and not the shortest: stretches, too, are the longer the busier the machine is.
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
            if top.pair is None:
                slot.late += 1
                self._record_late(stack, top.since)
        top.since = perf_counter_ns()

    def _record_late(self, stack: Stack, since: int) -> None:
        quiet = [entry for entry in stack if entry.is_special and entry.pair is None]
        scopes = [entry.quiet.id for entry in quiet if entry.quiet is not None]
        pair = make_pair(late_name(scopes, self._mark_moment() - since + _EARLIER_NS))
        pair[0]()
        pair[1]()

    def _mark_moment(self) -> int:
        """Puts a span into the recording, and returns when by our own clock, which then can be told from torch's."""
        mark = self._marks.pop() if self._marks else make_pair(MOMENT_NAME)
        for _ in range(_TRIES):
            moment = perf_counter_ns()
            mark[0]()
            taken = perf_counter_ns() - moment
            mark[1]()
            if taken <= 2 * self._shortest_ns:  # else the thread was interrupted: before the span's clock, or behind?
                break
        self._marks.append(mark)
        return moment
