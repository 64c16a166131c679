"""DS004, many tiny kernels."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/model.py"
US = 1_000


def launches(*, kernel: int, every: int, count: int = 50, queued: bool = False) -> TraceBuilder:
    """Steps in which line 7 launches `count` kernels of `kernel` µs, one every `every` µs; `queued`: all at once."""
    builder = TraceBuilder()
    length = (count * every + 20) * US
    for number in range(2):
        at = number * length
        builder.step(number, at, length).line(FILE, 7, "forward", at, length)
        for row in range(count):
            start = at + (row * every + 10) * US
            builder.kernel("elementwise", at + row if queued else start - 5 * US, start, kernel * US)
    return builder


def test_kernels_shorter_than_their_launches_are_found_with_the_idle_time_before_them(findings_of):
    (found,) = findings_of(launches(kernel=4, every=20), "DS004")
    assert (found.file, found.line) == (FILE, 7)
    # A gap of 16 µs before each, but for the first of a step: 10 µs, and 10 + 16 + 10 to the step before.
    idle = (2 * 49 * 16 + 10 + 36) * US
    assert found.evidence == {
        "kernels": 100, "kernels_per_step": 50.0, "kernel_mean_us": 4.0, "idle_before_ns": idle,
    }  # fmt: skip
    assert found.saving_ns == idle


def test_a_fused_optimizer_is_recommended_where_an_optimizer_launches_that_is_not_fused(findings_of):
    (found,) = findings_of(launches(kernel=4, every=20), "DS004")
    assert "optimizer" not in found.remedy.text
    for fused in ([True], [True, None]):
        built = launches(kernel=4, every=20)
        for number in range(2):
            built.annotation("Optimizer.step#AdamW.step", number * 1020 * US, 1020 * US)
        optimizers = [{"name": "AdamW", "fused": one} for one in fused]
        built.metadata["deepscope"] = {"format": 2, "settings": {"optimizers": optimizers}}
        (found,) = findings_of(built, "DS004")
        assert ("fused=True" in found.remedy.text) is (None in fused)


@pytest.mark.parametrize(("compiled", "is_advised"), [(7, False), (9, True)])
def test_compiling_is_recommended_for_what_is_not_compiled(findings_of, compiled, is_advised):
    built = launches(kernel=4, every=20)
    at = 2 * 1020 * US  # in a third step
    built.step(2, at, 1020 * US).line(FILE, compiled, "forward", at, 500 * US)
    built.annotation("Torch-Compiled Region: 0/0", at + 10 * US, 400 * US)
    built.kernel("triton", at + 20 * US, at + 30 * US, 4 * US)
    (found,) = findings_of(built, "DS004")
    assert found.line == 7
    assert ("torch.compile" in found.remedy.text) == is_advised


def test_long_kernels_keep_the_device_busy(findings_of):
    assert findings_of(launches(kernel=18, every=20, count=200), "DS004") == []
    assert findings_of(launches(kernel=60, every=80), "DS004") == []


def test_few_kernels_are_not_many(findings_of):
    assert findings_of(launches(kernel=4, every=20, count=9), "DS004") == []


def test_kernels_launched_long_before_do_not_wait_for_the_cpu(findings_of):
    assert findings_of(launches(kernel=4, every=20, queued=True, count=400), "DS004") == []
    assert findings_of(launches(kernel=4, every=20, count=400), "DS004") != []


def test_what_a_device_takes_between_two_kernels_is_nobodys_fault(findings_of):
    assert findings_of(launches(kernel=2, every=4, count=1000), "DS004") == []


def test_what_recording_took_before_a_kernel_is_not_the_launches(findings_of):
    builder = launches(kernel=4, every=20)
    builder.metadata["deepscope"] = {"lines": {"cost_ns": 5 * US}}
    for number in range(2):
        for row in range(1, 50):  # line 8 runs in the gap before each kernel but a step's first
            builder.line(FILE, 8, "one", (number * 1020 + row * 20) * US, 2 * US)
    (found,) = findings_of(builder, "DS004")
    # Line 7 itself is entered in the gap before each step.
    assert found.saving_ns == (2 * 49 * (16 - 5) + 10 - 5 + 36 - 5) * US
