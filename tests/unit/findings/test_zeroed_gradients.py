"""DS009, gradients zeroed in place."""

from __future__ import annotations

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
ACCUMULATE = "torch::autograd::AccumulateGrad"


def steps(
    *, passes: int = 1, zeros: str = "aten::zero_", add: str = "aten::add_", each: int = 2, at_once: bool = False
) -> TraceBuilder:
    """Two steps of 1,000 µs: line 5 fills for 100 µs, `each` µs a gradient; backward passes add for 30 µs each."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 120 * US)
        builder.annotation("Optimizer.zero_grad#SGD.zero_grad", at + 5 * US, 110 * US)
        if at_once:
            builder.op("aten::_foreach_zero_", at + 10 * US, 100 * US)
        for start in range(10, 110, each):
            builder.op(zeros, at + start * US, each * US)
        for turn in range(passes):
            begin = at + (200 + turn * 200) * US
            builder.line(FILE, 6, "main", begin, 190 * US).op("aten::mm", begin + US, 50 * US, sequence=turn)
            builder.backward("MmBackward0", begin + 60 * US, 60 * US, turn, tid=MAIN)
            builder.op(f"autograd::engine::evaluate_function: {ACCUMULATE}", begin + 130 * US, 40 * US)
            builder.op(ACCUMULATE, begin + 131 * US, 38 * US).op(add, begin + 132 * US, 30 * US)
    return builder


def test_zeros_and_the_additions_to_them_are_found_where_gradients_are_zeroed(findings_of):
    (found,) = findings_of(steps(), "DS009")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {"zeroing_ns": 200 * US, "adding_ns": 60 * US}
    assert found.saving_ns == 260 * US
    assert "set_to_none=True" in found.remedy.text


def test_of_several_backward_passes_only_one_would_have_nothing_to_add_to(findings_of):
    (found,) = findings_of(steps(passes=3), "DS009")
    assert found.evidence["adding_ns"] == 3 * 60 * US // 3


def test_all_at_once_is_the_same(findings_of):
    (found,) = findings_of(steps(at_once=True), "DS009")
    assert found.saving_ns == 260 * US


def test_gradients_set_to_none_are_not_found(findings_of):
    assert findings_of(steps(zeros="aten::detach", add="aten::detach"), "DS009") == []


def test_on_the_cpu_large_gradients_are_dearer_to_allocate_anew(findings_of):
    assert findings_of(steps(each=20), "DS009") == []


def test_zeros_outside_zero_grad_are_not_found(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 500 * US)
    assert findings_of(builder.op("aten::zero_", 10 * US, 400 * US), "DS009") == []


def test_with_a_device_its_work_is_what_counts(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 500 * US)
    builder.annotation("Optimizer.zero_grad#SGD.zero_grad", 5 * US, 400 * US).op("aten::zero_", 10 * US, 300 * US)
    (found,) = findings_of(builder.kernel("fill", 20 * US, 30 * US, 70 * US), "DS009")
    assert found.saving_ns == 70 * US


def test_little_is_not_worth_a_word(findings_of):
    assert findings_of(steps().step(2, 2000 * US, 40_000 * US), "DS009") == []
