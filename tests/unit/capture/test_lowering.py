"""Which functions are lowered at one look, and how far."""

from __future__ import annotations

from collections import Counter
from textwrap import dedent
from types import CodeType

import pytest

from deepscope.capture.lines.bytecode import Detail
from deepscope.capture.lines.calibration import CostSamples
from deepscope.capture.lines.frames import FunctionState
from deepscope.capture.lines.lowering import Lowering
from deepscope.capture.lines.modules import ModuleCalls
from deepscope.capture.lines.overhead_budget import Limits, OverheadBudget
from deepscope.capture.lines.recorded_code import UserCode
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable


class Beyond(OverheadBudget):
    """A overhead_budget that finds the window so far beyond what it may cost."""

    def __init__(self, table: ScopeTable, beyond: float) -> None:
        super().__init__(table, CostSamples(), Limits())
        self._beyond = beyond

    def look(self) -> float:
        return self._beyond


class Switch:
    def __init__(self) -> None:
        self.followed = 0
        self.samples = 0

    def silences_loops(self, _function: FunctionState) -> bool:
        return True

    def follow_detail(self, function: FunctionState) -> None:
        self.followed += 1

    def end_lines(self) -> None: ...

    def take_samples(self) -> None:
        self.samples += 1


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
    overhead_budget = Beyond(table, beyond)
    stacks = Stacks(table, ModuleCalls(table, are_wanted=False), overhead_budget)
    Lowering(table, stacks, overhead_budget, Switch()).look(stacks.threads.own)
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


# What its runs take tells whether a line holds operators, which is tried in tests of line scopes: here none does.
LOWER_AT_THE_FIRST_LOOK = """
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.scopes import Slot
Slot.seems_to_hold = False
found, weigh = iter([2.0]), OverheadBudget.look
def look(overhead_budget):
    weigh(overhead_budget)
    return next(found, 0.0)
OverheadBudget.look = look
def passed_on(value):
    return value
def runs_at(window, mark):
    numbers = [n for n, row in enumerate(window.record.scopes) if row.line == line_of(mark)]
    return sum(window.record.entries[n] for n in numbers)
x = torch.ones(2)
"""


def test_lines_behind_a_lowered_loop_come_back_with_the_next_call_of_python(run) -> None:
    run(
        LOWER_AT_THE_FIRST_LOOK
        + dedent("""
    def step(x):
        x = x + 1  # before
        total = 0
        for i in range(20_000):  # loop
            if i & 1:
                continue
            total += i  # body
        y = passed_on(  # call
            x * 2)
        z = torch.sub(y, 1)  # behind
        return z / 2  # end
    with Window() as window:
        for _ in range(3):
            step(x)
    assert [way for _, way in window.record.account.lowered] == ["loop"], window.record.account
    assert [lines[0] for lines in window.lines_of("aten::add")] == [line_of("before")] * 3
    assert [lines[0] for lines in window.lines_of("aten::sub")] == [line_of("behind")] * 3
    assert [lines[0] for lines in window.lines_of("aten::div")] == [line_of("end")] * 3
    assert runs_at(window, "call") >= 3
    assert 100 < runs_at(window, "body") < 20_000  # of the first step alone
    """)
    )


def test_a_lowered_loop_within_another_leaves_the_lines_of_that_one(run) -> None:
    run(
        LOWER_AT_THE_FIRST_LOOK.replace("[2.0]", "[0.5, 0.5]")
        + dedent("""
    def step(x, turns):
        for n in range(8):  # outer
            total = 0
            while total < turns:  # inner
                total += 1  # body
            passed_on(n)
            x = torch.sub(x, 1)  # behind
        return passed_on(x) * 2  # end
    with Window() as window:
        step(x, 1)
        step(x, 1500)
        step(x, 1500)
    assert [way for _, way in window.record.account.lowered] == ["loop"], window.record.account.lowered
    assert [window.record.scopes[n].line for n, _ in window.record.account.lowered] == [line_of("inner")]
    assert [lines[0] for lines in window.lines_of("aten::sub")] == [line_of("behind")] * 24
    assert [lines[0] for lines in window.lines_of("aten::mul")] == [line_of("end")] * 3
    assert runs_at(window, "body") < 12_000
    """)
    )


def test_an_exception_or_the_end_of_the_function_ends_a_lowered_loop(run) -> None:
    run(
        LOWER_AT_THE_FIRST_LOOK
        + dedent("""
    def adds(value):
        return value + 1  # callee
    def step(x):
        total = 0
        try:
            for i in range(9_000):  # loop
                total += i
            [][total]
        except IndexError:
            x = x / 2  # handler
        for i in range(3): adds(x)  # other
        for i in range(9_000):  # loop
            total += i
        return torch.neg(x)
    def calls(x):
        step(x)
        return torch.sub(x, 1)  # behind
    with Window() as window:
        for _ in range(2):
            calls(x)
    assert [lines[0] for lines in window.lines_of("aten::div")] == [line_of("handler")] * 2
    assert [lines[0] for lines in window.lines_of("aten::add")] == [line_of("callee")] * 6
    assert [lines[1] for lines in window.lines_of("aten::add")] == [line_of("other")] * 6
    assert [lines[0] for lines in window.lines_of("aten::sub")] == [line_of("behind")] * 2
    assert hooks() == clean
    """)
    )


NESTED = """
def train(batches):
    for batch in batches:
        for value in batch:
            x = value
            y = x
        loss(x)
"""


def lowered_loops(runs: dict[int, int]) -> list[int]:
    """First lines of the loops of `NESTED` that one look lowers, where its lines have run so often."""
    table = ScopeTable(UserCode("/"), 1_000_000)
    module = compile(NESTED, "/nested.py", "exec")
    function = table.function(next(one for one in module.co_consts if isinstance(one, CodeType)))
    for line, count in runs.items():
        slot = table.line(function, line)
        assert slot is not None
        slot.granted, slot.left, slot.judged = count, 0, 1
    overhead_budget = Beyond(table, 1.5)
    stacks = Stacks(table, ModuleCalls(table, are_wanted=False), overhead_budget)
    Lowering(table, stacks, overhead_budget, Switch()).look(stacks.threads.own)
    return [loop.line for loop in function.loops]


def test_of_nested_loops_the_one_that_repeats_is_lowered() -> None:
    assert lowered_loops({3: 1, 4: 5000, 5: 5000, 6: 5000}) == [4]  # the outer one's last line has not run yet
    assert lowered_loops({3: 5000, 4: 9000, 5: 9000, 6: 9000, 7: 5000}) == [3]


def test_callbacks_are_not_timed_while_lines_are_on_trial() -> None:
    table = ScopeTable(UserCode("/"), 1_000_000)
    module = compile(NESTED, "/nested.py", "exec")
    function = table.function(next(one for one in module.co_consts if isinstance(one, CodeType)))
    overhead_budget, switch = Beyond(table, 0.5), Switch()
    stacks = Stacks(table, ModuleCalls(table, are_wanted=False), overhead_budget)
    lowering = Lowering(table, stacks, overhead_budget, switch)
    for runs, samples, detail in ((1000, 0, Detail.LINES), (2000, 1, Detail.LOOPS)):
        for line in range(3, 7):
            slot = table.line(function, line)
            assert slot is not None
            slot.granted, slot.left = runs, 0
        lowering.look(stacks.threads.own)
        assert (switch.samples, function.detail) == (samples, detail)
