"""Which functions are lowered at one look, and how far."""

from __future__ import annotations

from collections import Counter
from types import CodeType

import pytest

from deepscope.capture.lines.calibration import CostSamples
from deepscope.capture.lines.detail import Detail, Limits
from deepscope.capture.lines.ledger import Ledger
from deepscope.capture.lines.lowering import Lowering
from deepscope.capture.lines.modules import ModuleCalls
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import Function, ScopeTable
from deepscope.capture.lines.user_code import UserCode


class Beyond(Ledger):
    """A ledger that finds the window so far beyond what it may cost."""

    def __init__(self, table: ScopeTable, beyond: float) -> None:
        super().__init__(table, CostSamples(), Limits())
        self._beyond = beyond

    def look(self) -> float:
        return self._beyond


class Switch:
    silences_loops = True

    def __init__(self) -> None:
        self.followed = 0

    def follow_detail(self, function: Function) -> None:
        self.followed += 1

    def end_lines(self) -> None: ...

    def take_samples(self) -> None: ...


def levels_after_a_look(functions: int, lines: int, beyond: float, *, body: str = "    x += 1\n") -> Counter[Detail]:
    """Of functions of so many lines that were called ten times each."""
    table = ScopeTable(UserCode("/"), 20_000)
    made = []
    for number in range(functions):
        module = compile(f"def f{number}(x):\n{body * lines}", f"/f{number}.py", "exec")
        code = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
        function = table.function(code)
        function.calls = 10
        for line in range(2, 2 + lines):
            slot = table.line(function, line)
            assert slot is not None
            slot.granted, slot.left = 10, 0
        made.append(function)
    ledger = Beyond(table, beyond)
    stacks = Stacks(table, ModuleCalls(table, are_wanted=False), ledger)
    Lowering(table, stacks, ledger, Switch()).look(stacks.own)
    return Counter(function.detail for function in made)


@pytest.mark.parametrize("beyond", [0.1, 1.5])
def test_thousands_of_small_functions_are_left_to_their_callers_in_one_look(beyond: float) -> None:
    levels = levels_after_a_look(2_000, 2, beyond)
    assert levels[Detail.CALLER] >= 1_900
    assert set(levels) == {Detail.CALLER, Detail.LINES}


def test_a_few_are_recorded_as_a_whole_first() -> None:
    assert levels_after_a_look(5, 2, 0.1) == {Detail.FUNCTION: 4, Detail.LINES: 1}


def test_functions_of_many_lines_are_recorded_as_a_whole_first_in_any_hurry() -> None:
    assert levels_after_a_look(5, 8, 1.5) == {Detail.FUNCTION: 5}


def test_what_is_not_beyond_stays() -> None:
    assert levels_after_a_look(5, 2, 0.0) == {Detail.LINES: 5}
