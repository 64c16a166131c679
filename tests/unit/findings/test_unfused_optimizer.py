"""DS011, an optimizer that loops over parameters."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def steps(
    *, optimizer: str = "AdamW", each: int = 4, count: int = 40, name: str = "aten::mul_", torch: str = "2.13.0"
) -> TraceBuilder:
    """Two steps of 1,000 µs, 400 µs of each in an optimizer that starts `count` operators of `each` µs."""
    builder = TraceBuilder(deepscope={"versions": {"torch": torch}})
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 450 * US)
        builder.annotation(f"Optimizer.step#{optimizer}.step", at + 10 * US, 400 * US)
        for turn in range(count):
            builder.op(name, at + (20 + turn * (each + 2)) * US, each * US)
        builder.line(FILE, 6, "main", at + 500 * US, 400 * US).op("aten::mm", at + 510 * US, 300 * US)
    return builder


def test_the_calls_of_a_looping_optimizer_are_found(findings_of):
    (found,) = findings_of(steps(), "DS011")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {"optimizer_ns": 800 * US, "operators": 80, "operators_per_step": 40.0}
    assert found.saving_ns == 600 * US
    assert "AdamW(…, fused=True)" in found.remedy.text


@pytest.mark.parametrize(("optimizer", "part"), [("AdamW", 60), ("Adagrad", 50), ("SGD", 35)])
def test_of_arithmetic_only_the_passes_are_saved_that_a_fused_step_does_not_make(findings_of, optimizer, part):
    (found,) = findings_of(steps(optimizer=optimizer, each=14, count=20), "DS011")
    arithmetic = 2 * 20 * 4 * US
    assert found.saving_ns == (800 * US - arithmetic) * 3 // 4 + arithmetic * part // 100


def test_without_momentum_sgd_passes_over_memory_once(findings_of):
    (found,) = findings_of(steps(optimizer="SGD", each=14, count=20, name="aten::add_"), "DS011")
    assert found.saving_ns == (800 - 160) * US * 3 // 4


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
