"""What recording is said to cost: callbacks by what they did, as often as they did it, and what Python adds to them."""

from __future__ import annotations

import sys
from types import CodeType

import pytest

from deepscope.capture.lines.bytecode import find_loops, resume_offset
from deepscope.capture.lines.calibration import CostSamples, HookWork, measure_overhead
from deepscope.capture.lines.overhead_budget import Limits, OverheadBudget
from deepscope.capture.lines.recorded_code import UserCode
from deepscope.capture.lines.table import ScopeTable


def samples_of(work: HookWork, *durations: int) -> CostSamples:
    costs = CostSamples()
    for duration in durations:
        costs.add(work, duration)
    return costs


def test_a_callback_in_which_torchs_memory_grew_counts() -> None:
    assert samples_of(HookWork.ENTRY, *[1_000] * 9, 6_000).of(HookWork.ENTRY) == 1_500


def test_one_that_was_interrupted_does_not() -> None:
    assert samples_of(HookWork.ENTRY, *[1_000] * 9, 4_000_000).of(HookWork.ENTRY) == 1_000


def ledger_of(costs: CostSamples) -> OverheadBudget:
    return OverheadBudget(ScopeTable(UserCode("/"), 20_000), costs, Limits())


def test_each_kind_of_work_has_a_cost_of_its_own() -> None:
    costs = samples_of(HookWork.QUIET, *[700] * 9)
    for work, duration in ((HookWork.TRIAL, 4_000), (HookWork.ENTRY, 1_000)):
        for _ in range(9):
            costs.add(work, duration)
    overhead_budget = ledger_of(costs)
    overhead_budget.quiet = 3
    overhead_budget.add_set_up(50)
    assert overhead_budget.cost_ns == 3 * 700 + 50


def test_what_a_callback_did_is_told_from_what_it_counted() -> None:
    overhead_budget = ledger_of(CostSamples())
    mark = overhead_budget.mark()
    assert overhead_budget.work_since(mark) is HookWork.ENTRY
    overhead_budget.quiet += 1
    assert overhead_budget.work_since(mark) is HookWork.QUIET
    overhead_budget.trials += 1
    assert overhead_budget.work_since(mark) is HookWork.TRIAL
    overhead_budget.add_set_up(1)
    assert overhead_budget.work_since(mark) is None


def test_calls_of_code_without_scopes_are_counted_on_every_thread() -> None:
    overhead_budget = ledger_of(CostSamples())
    overhead_budget.alone += [lambda: 3, lambda: 4]
    assert overhead_budget.left_alone == 7


def test_pythons_own_part_is_measured_and_leaves_no_hook_behind() -> None:
    before = sys.gettrace()
    overhead = measure_overhead()
    assert sys.gettrace() is before
    assert overhead.event_ns >= 0
    assert (overhead.slowdown > 1) is (overhead.call_ns > 0) is (sys.version_info < (3, 12))


def test_under_a_debugger_that_holds_the_trace_function_nothing_is_measured() -> None:
    def debugger(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        overhead = measure_overhead()
        held = sys.gettrace()
    finally:
        sys.settrace(before)
    assert held is debugger
    assert overhead.slowdown == 1 or sys.version_info >= (3, 12)


def code_of(source: str) -> CodeType:
    module = compile(source, "f.py", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


@pytest.mark.parametrize(
    ("source", "is_at_start"),
    [("def f(x):\n    return x", True), ("def f(x):\n    yield x", False), ("def f(x):\n    return lambda: x", False)],
)
def test_a_first_run_starts_behind_what_prepares_the_frame(source: str, is_at_start: bool) -> None:
    # RESUME came with 3.11; before, a first run is at the very first instruction.
    assert (resume_offset(code_of(source)) == 0) is (is_at_start or sys.version_info < (3, 11))


def test_a_function_without_a_jump_back_has_no_loops() -> None:
    assert not find_loops(code_of("def f(x):\n    if x:\n        return 1\n    return 2"))
    assert find_loops(code_of("def f(x):\n    for y in x:\n        print(y)"))


def test_a_loop_has_its_handlers_and_not_what_stands_between() -> None:
    (loop,) = find_loops(
        code_of("""def f(x):
    for y in x:
        try:
            y()
        except ValueError:
            continue
    x.last()
    return x""")
    )
    assert loop.line == 2
    assert loop.lines == {2, 3, 4, 5, 6}
