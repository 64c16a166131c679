"""DS011, an optimizer that loops over parameters."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def steps(
    *,
    optimizer: str = "AdamW",
    each: int = 4,
    count: int = 40,
    name: str = "aten::mul_",
    torch: str = "2.13.0",
    times: int = 2,
    length: int = 400,
    tables: list[dict[str, object]] | None = None,
) -> TraceBuilder:
    """Steps of 1,000 µs, `length` µs of each in an optimizer that starts `count` operators of `each` µs."""
    audit = {"format": 1, "steps": 2, "operators": 9, "places": [[0, 6, "main"]], "tables": tables or []}
    builder = TraceBuilder(deepscope={"versions": {"torch": torch}, "audit": audit})
    for number in range(times):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 450 * US)
        builder.annotation(f"Optimizer.step#{optimizer}.step", at + 10 * US, length * US)
        for turn in range(count):
            builder.op(name, at + (20 + turn * (each + 2)) * US, each * US)
        builder.line(FILE, 6, "main", at + 500 * US, 400 * US).op("aten::mm", at + 510 * US, 300 * US)
    return builder


def test_the_calls_of_a_looping_optimizer_are_found(findings_of):
    (found,) = findings_of(steps(), "DS011")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {
        "optimizer": "AdamW",
        "optimizer_ns": 800 * US,
        "operators": 80,
        "operators_per_step": 40.0,
    }
    assert found.saving_ns == 400 * US  # half of the calls and of the Python around them
    assert "AdamW(…, fused=True)" in found.remedy.text


@pytest.mark.parametrize(("optimizer", "part"), [("AdamW", 0.6), ("SGD", 0.2)])
def test_a_part_of_the_arithmetic_is_saved_by_the_kind_of_the_optimizer(findings_of, optimizer: str, part: float):
    (found,) = findings_of(steps(optimizer=optimizer, each=14, count=20), "DS011")
    arithmetic = 2 * 20 * 4 * US
    assert found.saving_ns == (800 * US - arithmetic) // 2 + round(part * arithmetic)


@pytest.mark.parametrize(("rows", "part"), [(50, 0.25), (200, 1.0)])
def test_the_arithmetic_on_a_table_of_which_few_rows_are_looked_up_is_not_its_own(findings_of, rows: int, part: float):
    table = {"place": 0, "rows": 1000, "used_rows": rows, "elements": 750, "optimizer": "SGD", "stepped_elements": 1000}
    (found,) = findings_of(steps(optimizer="SGD", each=14, count=20, tables=[table]), "DS011")
    arithmetic = 2 * 20 * 4 * US
    assert found.saving_ns == (800 * US - arithmetic) // 2 + round(0.2 * part * arithmetic)


def test_a_step_that_holds_something_else_tells_nothing_of_the_optimizer(findings_of):
    """The last of three steps of an optimizer takes fifty times as long, for what ends in it."""
    builder = TraceBuilder(deepscope={"versions": {"torch": "2.13.0"}})
    for number, length in enumerate((60, 60, 3000)):
        at = number * 1000 * US
        builder.step(number, at, (length + 800) * US).line(FILE, 5, "main", at, (length + 100) * US)
        builder.annotation("Optimizer.step#AdamW.step", at + 10 * US, length * US)
        for turn in range(24):
            builder.op("aten::mul_", at + (11 + 2 * turn) * US, 2 * US)
    assert findings_of(builder, "DS011") == []


def test_one_step_is_too_few_to_tell(findings_of):
    assert findings_of(steps(times=1), "DS011") == []


def test_a_small_part_of_the_step_is_not_worth_a_finding(findings_of):
    assert findings_of(steps(length=180, count=24), "DS011") == []


def test_of_two_optimizers_on_a_line_the_one_that_costs_is_named(findings_of):
    """`for one in optimizers: one.step()`: SGD takes 50 µs, AdamW 400."""
    builder = steps()
    for number in range(2):
        at = (number * 1000 + 910) * US
        builder.line(FILE, 5, "main", at, 60 * US).annotation("Optimizer.step#SGD.step", at, 50 * US)
        for turn in range(24):
            builder.op("aten::add_", at + 2 * turn * US, 1 * US)
    (found,) = findings_of(builder, "DS011")
    assert found.message.startswith("`AdamW`")
    assert "AdamW(…, fused=True)" in found.remedy.text


def test_what_is_fused_already_or_has_no_fused_form_is_not_found(findings_of):
    assert findings_of(steps(name="aten::_fused_adamw_"), "DS011") == []
    assert findings_of(steps(optimizer="RMSprop"), "DS011") == []
    assert findings_of(steps(torch="2.3.1"), "DS011") == []
    assert findings_of(steps(count=10), "DS011") == []


def test_with_a_device_its_kernels_are_what_counts(findings_of):
    assert findings_of(steps().kernel("gemm", 10, 100 * US, 5 * US), "DS011") == []


def test_the_closure_that_an_optimizer_runs_is_not_its_own(findings_of):
    closure = steps()
    for number in range(2):
        # Forward and backward last 100 µs, until the fourteenth of the optimizer's operators.
        closure.line(FILE, 9, "training_step", (number * 1000 + 12) * US, 88 * US)
    (found,) = findings_of(closure, "DS011")
    assert found.evidence["optimizer_ns"] == 2 * 310 * US
    assert found.evidence["operators"] == 2 * 26
