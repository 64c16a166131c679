"""DS007, many tiny operators on the CPU."""

from __future__ import annotations

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def loop(count: int, *, each: int = 2, python: int = 3, name: str = "aten::item") -> TraceBuilder:
    """Steps in which line 5 runs `count` times, each an operator of `each` µs and `python` µs around it; then line 6
    multiplies for 1,000 µs."""
    builder = TraceBuilder()
    length = (count * (each + python) + 1000) * US
    for number in range(2):
        at = number * length
        builder.step(number, at, length)
        for row in range(count):
            start = at + row * (each + python) * US
            builder.line(FILE, 5, "main", start, (each + python) * US).op(name, start + US, each * US)
        builder.line(FILE, 6, "main", at + length - 1000 * US, 1000 * US)
        builder.op("aten::mm", at + length - 990 * US, 980 * US)
    return builder


def test_a_loop_over_scalars_is_found_with_its_overhead(findings_of):
    (found,) = findings_of(loop(400), "DS007")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {
        "line_cpu_ns": 2 * 400 * 5 * US, "operators": 800, "operators_per_step": 400.0, "operator_median_us": 2.0,
    }  # fmt: skip
    assert found.saving_ns == 2 * 399 * 5 * US


def test_few_operators_or_long_ones_are_not_found(findings_of):
    assert findings_of(loop(50), "DS007") == []
    assert findings_of(loop(400, each=20), "DS007") == []


def test_an_optimizers_own_loop_is_not_found(findings_of):
    builder = loop(400, name="aten::add_")
    for number in range(2):
        builder.annotation("Optimizer.step#SGD.step", number * 3000 * US, 2000 * US)
    assert findings_of(builder, "DS007") == []


def test_with_a_device_its_kernels_are_what_counts(findings_of):
    assert findings_of(loop(400).kernel("gemm", 10, 100 * US, 5 * US), "DS007") == []
