"""DS018, parameters that autocast casts over and over."""

from __future__ import annotations

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
GATHER = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def linear(builder: TraceBuilder, at: int, casts: int, *, number: int, cast_us: int = 20, bias: int = 5) -> None:
    """A call of module `net` for 200 µs at line 5: `casts` casts (bias, weight, input), then the product."""
    builder.line(FILE, 5, "main", at, 200 * US).module("Linear", "net", at + US, 190 * US)
    builder.op("aten::linear", at + 2 * US, 180 * US, sequence=number)
    for turn in range(casts):
        start, length = at + (5 + 30 * turn) * US, (bias if turn == 0 else cast_us) * US
        builder.op("aten::to", start, length, sequence=number + turn)
        builder.op("aten::_to_copy", start + US, length - 2 * US, sequence=number + turn)
    builder.op("aten::linear", at + 120 * US, 50 * US, sequence=number + casts)
    builder.op("aten::addmm", at + 130 * US, 30 * US, sequence=number + casts)


def trained(*, calls: int, casts: int = 3, steps: int = 2) -> TraceBuilder:
    """Steps of 2,000 µs with so many calls; of the last call the backward pass casts weight and bias back."""
    builder = TraceBuilder()
    for step in range(steps):
        begin = step * 2000 * US
        builder.step(step, begin, 2000 * US)
        for call in range(calls):
            linear(builder, begin + call * 300 * US, casts, number=100 * step + 10 * call)
        at, first = begin + calls * 300 * US, 100 * step + 10 * (calls - 1)
        builder.line(FILE, 6, "main", at, 300 * US)
        for turn in range(min(casts, 2)):
            start = at + (10 + 50 * turn) * US
            builder.backward("ToCopyBackward0", start, 10 * US, first + turn, tid=MAIN)
            builder.op(GATHER, start + 20 * US, 10 * US)
        builder.annotation("Optimizer.step#SGD.step", at + 320 * US, 20 * US)
    return builder


def test_all_casts_of_a_trained_parameter_but_one_a_step_are_needless(findings_of):
    (found,) = findings_of(trained(calls=4), "DS018")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence["casts"] == 2 * 4 * 2
    # Of weight (20 µs) and bias (5 µs) three of four casts, and so of the 10 µs that either takes back in each step.
    assert found.saving_ns == 2 * 3 * 25 * US + 2 * 20 * US * 3 // 4
    assert "once" in found.remedy.text


def test_one_cast_a_step_is_needed(findings_of):
    assert findings_of(trained(calls=1), "DS018") == []


def test_gradients_that_are_accumulated_need_one_cast_for_each_backward_pass(findings_of):
    """Autocast is left before `backward()`, as torch's documentation asks."""
    builder = TraceBuilder()
    for step in range(2):
        begin = step * 2000 * US
        builder.step(step, begin, 2000 * US)
        for micro in range(2):
            at, first = begin + micro * 600 * US, 100 * step + 10 * micro
            linear(builder, at, 3, number=first)
            builder.line(FILE, 6, "main", at + 250 * US, 300 * US)
            for turn in range(2):
                builder.backward("ToCopyBackward0", at + (260 + 50 * turn) * US, 10 * US, first + turn, tid=MAIN)
                builder.op(GATHER, at + (280 + 50 * turn) * US, 10 * US)
        builder.annotation("Optimizer.step#SGD.step", begin + 1300 * US, 20 * US)
    assert findings_of(builder, "DS018") == []


def frozen(*, casts: int, named: str = "aten::linear") -> TraceBuilder:
    """Two steps with one call each, and no backward pass to it."""
    builder = TraceBuilder()
    for step in range(2):
        builder.step(step, step * 500 * US, 500 * US)
        linear(builder, step * 500 * US, casts, number=7, bias=15)
    for event in builder.events:
        if event["name"] == "aten::linear":
            event["name"] = named
    return builder


def test_what_is_not_trained_need_not_be_cast_at_all(findings_of):
    (found,) = findings_of(frozen(casts=3), "DS018")
    assert found.saving_ns == 2 * 20 * US  # of three the second is the weight's
    assert "module.to(torch.bfloat16)" in found.remedy.text
    (found,) = findings_of(frozen(casts=2), "DS018")
    assert found.saving_ns == 2 * 15 * US  # of two the cheaper one counts


def test_a_single_cast_may_be_the_input_s(findings_of):
    assert findings_of(frozen(casts=1), "DS018") == []


def test_products_of_activations_have_no_parameters(findings_of):
    assert findings_of(frozen(casts=3, named="aten::matmul"), "DS018") == []


def test_casts_that_the_user_makes_are_the_user_s(findings_of):
    builder = TraceBuilder().step(0, 0, 500 * US).line(FILE, 5, "main", 0, 400 * US)
    for start in range(0, 400, 40):
        builder.op("aten::to", start * US, 30 * US).op("aten::_to_copy", start * US + US, 28 * US)
    assert findings_of(builder, "DS018") == []
