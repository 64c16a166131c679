"""DS012, a few slow steps."""

from __future__ import annotations

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def steps(*, slow: tuple[int, ...] = (4,), count: int = 8, line: int = 20, inner: bool = False) -> TraceBuilder:
    """Steps of 1,000 µs on line 5; slow ones go on for 2,000 µs at `line`, most of it in line 30 if `inner`."""
    builder = TraceBuilder()
    at = 0
    for number in range(count):
        length = 3000 if number in slow else 1000
        builder.step(number, at, length * US).line(FILE, 5, "main", at, 900 * US)
        builder.op("aten::mm", at + 10 * US, 800 * US)
        if number in slow:
            builder.line(FILE, line, "main", at + 950 * US, 2000 * US)
            if inner:
                builder.line(FILE, 30, "save", at + 1000 * US, 1900 * US)
        at += length * US
    return builder


def test_the_line_that_only_the_slow_step_runs_is_found(findings_of):
    (found,) = findings_of(steps(), "DS012")
    assert (found.file, found.line, found.saving_ns) == (FILE, 20, 2000 * US)
    assert found.evidence == {
        "excess_ns": 2000 * US, "slow_steps": 1, "slowest_step": "4", "slowest_step_ratio": 3.0,
    }  # fmt: skip


def test_of_lines_that_call_each_other_it_is_the_outermost(findings_of):
    (found,) = findings_of(steps(slow=(2, 6), inner=True), "DS012")
    assert (found.line, found.saving_ns, found.evidence["slow_steps"]) == (20, 4000 * US, 2)


def test_steps_that_are_often_slow_and_a_slow_first_step_are_usual(findings_of):
    assert findings_of(steps(slow=(1, 3, 5)), "DS012") == []
    assert findings_of(steps(slow=(0,)), "DS012") == []
    assert findings_of(steps(count=4, slow=(2,)), "DS012") == []


def test_a_step_that_does_what_the_others_do_was_held_up_by_the_machine(findings_of):
    builder = TraceBuilder()
    at = 0
    for number in range(8):
        length = 3000 if number == 4 else 1000
        builder.step(number, at, length * US).line(FILE, 5, "main", at, (length - 100) * US)
        at += length * US
    assert findings_of(builder, "DS012") == []


def test_what_data_loading_promises_is_not_promised_again(findings_of):
    builder = steps()
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 4950 * US, 2000 * US)
    assert findings_of(builder, "DS003") != []
    assert findings_of(builder, "DS012") == []


def test_one_step_alone_is_compared_with_nothing(findings_of):
    assert findings_of(steps(), "DS012", step=4) == []


def test_with_a_device_its_idle_time_is_what_counts(findings_of):
    assert findings_of(steps().kernel("gemm", 10 * US, 20 * US, 500 * US), "DS012") == []
