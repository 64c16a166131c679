"""What recording has cost a window so far, and what it may cost: where that is passed, detail is lowered."""

from __future__ import annotations

import math
from collections.abc import Callable

from deepscope.capture.lines.calibration import CostSamples, Work
from deepscope.capture.lines.detail import Limits
from deepscope.capture.lines.off_cpu import RunClock
from deepscope.capture.lines.table import LINE, MODULE, ScopeTable

_LONG_NS = 4_000
"""Each of so many nanoseconds of work that is done once counts as a happening."""
_GRACE_NS = 50_000_000
"""Nobody minds so much, and a program may begin with its dearest lines."""
_EVERY = 4096
"""Entries between two looks at what they cost."""
_SCARCE = 0.6
"""The part of `max_entries` from which on the dearest lines give way, so that the last entry is never used."""
_SCARCITY = 25
"""Graces beyond the limit for each part of `max_entries` used past `_SCARCE`: ten when all are used."""


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
        lines = self._line_entries()
        self.is_scarce = lines > self._limits.max_entries * _SCARCE
        if self.is_scarce:
            return _SCARCITY * (lines / self._limits.max_entries - _SCARCE)
        share = self._limits.max_slowdown - 1
        if share == math.inf or recent_cost <= share * max(recent - recent_cost, 0):
            return 0.0  # It was dear once and is not any more.
        cost += self._once_ns()
        return (cost - _GRACE_NS - share * max(moment - cost, 0)) / _GRACE_NS

    def pay(self) -> int:
        """Nanoseconds that recording has cost since it was last asked, beside what entries with a scope cost."""
        costs, entry_ns = self.costs, self.costs.of(Work.ENTRY)
        now = (
            self.started, self.quiet, self.trials, self.silent, self.modules, self.left_alone, self.switched_off(),
            self._set_up_ns,
        )  # fmt: skip
        each = (
            2 * costs.of(Work.CALL),
            costs.of(Work.QUIET),
            max(costs.of(Work.TRIAL) - entry_ns, 0),
            costs.of(Work.SILENT),
            costs.of(Work.MODULE),
            costs.overhead.call_ns,
            costs.overhead.off_ns,
            1,
        )
        before, self._paid, self.unpaid = self._paid, now, 0
        return sum((count - old) * cost for count, old, cost in zip(now, before, each, strict=True))

    def mark(self) -> tuple[int, int, int, int]:
        """Before a callback is timed: what `work_since` compares with."""
        return self.quiet, self.trials, self._set_ups, self.silent

    def work_since(self, mark: tuple[int, int, int, int]) -> Work | None:
        """What the one callback since `mark` did; None where it did something that is timed by itself."""
        quiet, trials, set_ups, silent = mark
        if self._set_ups > set_ups:
            return None
        if self.trials > trials:
            return Work.TRIAL
        if self.silent > silent:
            return Work.SILENT
        return Work.QUIET if self.quiet > quiet else Work.ENTRY

    @property
    def left_alone(self) -> int:
        """Calls of code without scopes that reached a hook."""
        return sum(count() for count in self.alone)

    @property
    def share_on_core(self) -> float:
        """Of the time in which the window's thread could run, the part in which it had a core."""
        return self._clock.share_on_core()

    @property
    def entries(self) -> int:
        """Scopes opened."""
        return sum(slot.opened for slot in self._table.slots)

    @property
    def calls(self) -> int:
        """Calls of the user's functions that reached a hook."""
        return sum(function.calls for function in (*self._table.functions.values(), *self._table.dropped.values()))

    @property
    def cost_ns(self) -> int:
        """What all entries and calls have cost."""
        return self._lasting_ns() + self._once_ns()

    def _lasting_ns(self) -> int:
        costs, lines, modules = self.costs, self._line_entries(), self._module_entries()
        return (
            max(lines - self.trials, 0) * costs.of(Work.ENTRY)
            + self.trials * costs.of(Work.TRIAL)
            + self.quiet * costs.of(Work.QUIET)
            + self.silent * costs.of(Work.SILENT)
            + modules * costs.of(Work.MODULE)
            + max(2 * self.calls - modules, 0) * costs.of(Work.CALL)
            + self.left_alone * costs.overhead.call_ns
        )

    def _once_ns(self) -> int:
        return self.switched_off() * self.costs.overhead.off_ns + self._set_up_ns

    def _line_entries(self) -> int:
        rows = zip(self._table.slots, self._table.rows, strict=False)  # another thread may just be adding one
        return sum(slot.opened for slot, row in rows if row.kind == LINE)

    def _module_entries(self) -> int:
        rows = zip(self._table.slots, self._table.rows, strict=False)
        return sum(slot.opened for slot, row in rows if row.kind == MODULE)
