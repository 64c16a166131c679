"""The profiler's own scopes: how one is opened and closed, and the idle ones of each line and module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

UNLIMITED = 1 << 62
SILENT = -UNLIMITED
"""A library's line that holds no operator has so little left: it gets no scopes."""
OFTEN = 4
"""A line holds operators where one in so many of its runs is long enough for one."""
_FIRST_PORTION, _LARGEST_PORTION = 4, 256

Enter = Callable[[], Any]
Exit = Callable[[], Any]
Pair = tuple[Enter, Exit]
"""Opens and closes one reusable scope; never opened twice without being closed in between."""

MakePair = Callable[[str], Pair]
"""Makes a scope of that name: a span of torch's recording, or whatever else is to happen while a line runs."""


def make_pair(name: str) -> Pair:
    """A scope of that name (ASCII, no quotes: Kineto's writer breaks on both).

    Torch's fast scope costs 0.4 µs a run; where a torch has none, `record_function` stands in at ten times that.
    """
    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    if fast is not None:
        scope = fast(name)
        return scope.__enter__, scope.__exit__
    slow = torch.profiler.record_function(name)
    return slow.__enter__, lambda: slow.__exit__(None, None, None)


sequence_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr", int)
"""What autograd has counted on this thread: each operator that it must know of for a backward pass. 0 where torch does
not tell."""


def profiler_enabled() -> bool:
    """Whether this thread has a recording of its own; one of all threads (`profile_all_threads`) does not count.

    True where torch cannot tell: entering is then torch's own affair, and without a recording it does nothing.
    """
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(enabled()) if enabled is not None else True


_kept_forever: list[object] = []


def keep_forever(thing: object) -> None:
    """Keep for ever what may hold an open scope: freed during a later window it corrupts torch's heap."""
    _kept_forever.append(thing)


class Slot:
    """A line or module that has run: its number, its idle scopes, and how many more runs its budget allows."""

    __slots__ = (
        "_make",
        "granted",
        "holds",
        "id",
        "is_certain",
        "is_unproven",
        "judged",
        "late",
        "left",
        "long",
        "missed",
        "name",
        "pool",
        "reserve",
        "trials",
    )

    def __init__(self, number: int, name: str, budget: int, make: MakePair = make_pair) -> None:
        self._make = make
        self.id = number
        self.name = name
        self.granted = self.left = budget if budget == UNLIMITED else min(budget, _FIRST_PORTION)
        self.reserve = budget - self.granted
        """The budget that is not granted yet. It is granted in portions, so that runs are counted in passing."""
        self.missed = 0
        """Runs without a scope, past the budget."""
        self.late = 0
        """Stretches of runs without a scope that were recorded afterwards: an operator may have been in them."""
        self.judged = 0
        """Runs since the budget was spent."""
        self.long = 0
        """Stretches long enough for an operator, since it was last judged whether the line holds any."""
        self.holds = False
        """Whether its runs, when they were last judged, were long enough for operators."""
        self.is_unproven = False
        """Whether it is a library's line of which it is not known yet whether it holds operators."""
        self.is_certain = False
        """Of a library's line: whether something was seen in it that holds operators, and not its length alone."""
        self.trials = 0
        """Trials that it passed, if it is unproven."""
        self.pool: list[Pair] = []
        """Scopes that are closed; recursion needs one for each open run."""

    def grant(self) -> int:
        """Allow another portion of the budget, at least one; returns how many runs."""
        portion = max(min(self.reserve, self.granted, _LARGEST_PORTION), 1)
        self.reserve -= portion
        self.granted += portion
        self.left += portion
        return portion

    def spend_budget(self) -> None:
        """Judge the line from its next run on."""
        self.granted -= max(self.left, 0)
        self.reserve = 0
        self.left = min(self.left, 0)

    def try_again(self) -> None:
        """As `spend_budget`, whatever an earlier trial has found."""
        self.spend_budget()
        self.judged = self.long = 0
        self.holds = False

    def silence(self) -> None:
        """Give the line no scope from here on."""
        if self.left > SILENT:
            self.granted -= self.left
            self.trials = 0
            self.reserve = 0
            self.left = SILENT

    @property
    def silent_runs(self) -> int:
        """Runs since it was silenced."""
        return SILENT - self.left if self.left < SILENT else 0

    def prove(self, budget: int) -> None:
        """A library's line holds an operator: it has a budget like a line of the user's from here on."""
        self.is_unproven = False
        self.trials = 0
        self.reserve = budget
        self.judged = self.long = 0

    @property
    def seems_to_hold(self) -> bool:
        """Whether the line has been seen to run as long as operators do."""
        return self.holds or self.long * OFTEN > self.judged

    def pair(self) -> Pair:
        """A new scope, for when the pool is empty."""
        return self._make(self.name)

    @property
    def opened(self) -> int:
        """Scopes opened."""
        return self.granted - (self.left if self.left > SILENT else 0) + self.late
