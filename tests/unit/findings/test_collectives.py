"""DS014, DS015 and DS016: communication on devices, and with gloo on the CPU."""

from __future__ import annotations

import pytest

from deepscope.analysis.findings.recorded_collectives import CollectiveKind, operation_of
from trace_builder import BACKWARD, MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
OTHER = 103


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        (NCCL, CollectiveKind.ALL_REDUCE),
        ("c10d::allreduce_", CollectiveKind.ALL_REDUCE),
        ("gloo:all_reduce", CollectiveKind.ALL_REDUCE),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", CollectiveKind.REDUCE_SCATTER),
        ("c10d::reduce_scatter_tensor_coalesced_", CollectiveKind.REDUCE_SCATTER),
        ("ncclDevKernel_AllGather_RING_LL", CollectiveKind.ALL_GATHER),
        ("nccl:all_to_all", CollectiveKind.ALL_TO_ALL),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", CollectiveKind.ALL_TO_ALL),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind.OTHER),
        ("aten::mm", CollectiveKind.OTHER),
    ],
)
def test_what_a_collective_does_is_told_by_its_name(name, operation):
    assert operation_of(name) is operation


def device(*, exposed: int = 400, compute: int = 500, line: int = 7) -> TraceBuilder:
    """Two steps of 1,000 µs: a product of `compute` µs, then an all-reduce of `exposed` µs beside nothing."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US)
        builder.line(FILE, 5, "main", at, 50 * US).kernel("gemm", at + 10 * US, at + 20 * US, compute * US)
        builder.line(FILE, line, "main", at + 50 * US, 50 * US).op("c10d::allreduce_", at + 55 * US, 30 * US)
        builder.kernel(NCCL, at + 60 * US, at + (20 + compute) * US, exposed * US, stream=20)
    return builder


def test_a_collective_beside_nothing_is_found_at_the_line_that_started_it(findings_of):
    (found,) = findings_of(device(), "DS014")
    assert (found.file, found.line) == (FILE, 7)
    assert found.evidence == {
        "exposed_ns": 800 * US, "collective_ns": 800 * US, "collectives": 2, "collectives_per_step": 1.0,
    }  # fmt: skip
    assert found.saving_ns == 800 * US
    assert "async_op=True" in found.remedy.text


def test_no_more_is_promised_than_there_is_to_compute_meanwhile(findings_of):
    (found,) = findings_of(device(compute=100), "DS014")
    assert found.saving_ns == 200 * US


def test_what_runs_beside_other_kernels_is_not_found(findings_of):
    builder = device()
    for number in range(2):
        at = number * 1000 * US
        builder.line(FILE, 9, "main", at + 120 * US, 50 * US)
        builder.kernel("gemm", at + 130 * US, at + 520 * US, 400 * US)
    assert findings_of(builder, "DS014") == []


def test_what_hides_half_of_it_leaves_half(findings_of):
    builder = device()
    for number in range(2):
        at = number * 1000 * US
        builder.kernel("gemm", at + 130 * US, at + 520 * US, 200 * US)
    (found,) = findings_of(builder, "DS014")
    assert found.evidence["exposed_ns"] == 400 * US


def test_of_sums_beside_the_backward_pass_half_could_be_sent(findings_of):
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 6, "main", at, 600 * US)
        builder.kernel("gemm", at + 10 * US, at + 20 * US, 500 * US)
        builder.backward("torch::autograd::AccumulateGrad", at + 100 * US, 100 * US, number, tid=MAIN)
        builder.op("c10d::allreduce_", at + 110 * US, 50 * US)
        builder.kernel(NCCL, at + 120 * US, at + 520 * US, 400 * US, stream=20)
    (found,) = findings_of(builder, "DS014")
    assert found.saving_ns == 400 * US
    assert "bf16_compress_hook" in found.remedy.text


def small(*, each: int = 40, count: int = 10, between: int = 0) -> TraceBuilder:
    """Two steps of 2,000 µs in which line 7 sums `count` times for `each` µs, with `between` operators between."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 2000 * US
        builder.step(number, at, 2000 * US).line(FILE, 5, "main", at, 20 * US)
        builder.kernel("gemm", at + 5 * US, at + 10 * US, 600 * US)
        for row in range(count):
            start = at + (700 + 100 * row) * US
            builder.line(FILE, 7, "main", start, 90 * US).op("c10d::allreduce_", start + US, 30 * US)
            builder.kernel(NCCL, start + 5 * US, start + 10 * US, each * US, stream=20)
            for one in range(between):
                builder.op("aten::mul", start + (50 + 5 * one) * US, 2 * US)
    return builder


def test_many_small_sums_in_a_row_are_found_and_the_first_of_each_step_stays(findings_of):
    (found,) = findings_of(small(), "DS015")
    assert (found.line, found.saving_ns) == (7, 2 * 9 * 40 * US)
    assert found.evidence == {
        "collectives": 20, "collectives_per_step": 10.0, "collective_usual_us": 40.0, "exposed_ns": 800 * US,
    }  # fmt: skip
    assert findings_of(small(), "DS014") == []


def test_few_sums_long_ones_and_those_with_work_between_are_not_small_ones_in_a_row(findings_of):
    assert findings_of(small(count=7), "DS015") == []
    assert findings_of(small(each=400, count=10), "DS015") == []
    assert findings_of(small(between=4), "DS015") == []


def buckets(bucket_bytes: int) -> TraceBuilder:
    """Two backward passes of `DistributedDataParallel` with buckets of that size, each of ten small sums."""
    builder = TraceBuilder(deepscope={"settings": {"parallel": [{"bucket_bytes": bucket_bytes}]}})
    for number in range(2):
        at = number * 2000 * US
        builder.step(number, at, 2000 * US).line(FILE, 6, "main", at, 1900 * US)
        for row in range(10):
            start = at + 150 * row * US
            builder.backward("torch::autograd::AccumulateGrad", start, 100 * US, 9, tid=MAIN)
            builder.op("aten::mm", start + 5 * US, 5 * US).op("c10d::allreduce_", start + 20 * US, 20 * US)
            builder.kernel(NCCL, start + 30 * US, start + 40 * US, 50 * US, stream=20)
    return builder


def test_small_buckets_are_found_and_those_of_torch_s_size_are_not(findings_of):
    (found,) = findings_of(buckets(1_000_000), "DS015")
    assert found.saving_ns == 2 * 9 * 50 * US
    assert "bucket_cap_mb" in found.remedy.text
    assert findings_of(buckets(25 * 1024 * 1024), "DS015") == []


def accumulated(*, synced: int = 3, passes: int = 3, steps: int = 2) -> TraceBuilder:
    """Steps of 1,000 µs a pass: each pass forwards, multiplies, and (the last `synced` ones) sums for 300 µs."""
    builder = TraceBuilder()
    for number in range(steps):
        for turn in range(passes):
            at = (number * passes + turn) * 1000 * US
            builder.line(FILE, 5, "main", at, 100 * US).annotation("DistributedDataParallel.forward", at + US, 90 * US)
            builder.kernel("gemm", at + 10 * US, at + 20 * US, 500 * US)
            builder.line(FILE, 6, "main", at + 100 * US, 800 * US)
            if turn >= passes - synced:
                builder.backward("torch::autograd::AccumulateGrad", at + 150 * US, 100 * US, 9, tid=MAIN)
                builder.op("c10d::allreduce_", at + 160 * US, 50 * US)
                builder.kernel(NCCL, at + 170 * US, at + 520 * US, 300 * US, stream=20)
        end = (number * passes + passes - 1) * 1000 * US + 900 * US
        builder.annotation("Optimizer.step#SGD.step", end, 50 * US)
        builder.step(number, number * passes * 1000 * US, passes * 1000 * US)
    return builder


def test_sums_before_the_last_backward_pass_are_needless(findings_of):
    (found,) = findings_of(accumulated(), "DS016")
    assert (found.file, found.line) == (FILE, 6)
    assert found.evidence == {
        "needless_collectives": 4, "needless_per_step": 2.0, "collective_ns": 1200 * US, "exposed_ns": 1200 * US,
    }  # fmt: skip
    assert found.saving_ns == 1200 * US
    assert "no_sync" in found.remedy.text


def test_with_no_sync_and_with_one_pass_a_step_there_is_nothing_needless(findings_of):
    assert findings_of(accumulated(synced=1), "DS016") == []
    assert findings_of(accumulated(passes=1, synced=1), "DS016") == []


def test_after_the_last_step_nobody_knows_what_follows(findings_of):
    builder = accumulated(passes=1, synced=1)
    for turn in (2, 3):
        at = turn * 1000 * US
        builder.annotation("DistributedDataParallel.forward", at, 90 * US).line(
            FILE, 6, "main", at + 100 * US, 800 * US
        )
        builder.backward("torch::autograd::AccumulateGrad", at + 150 * US, 100 * US, 9, tid=MAIN)
        builder.op("c10d::allreduce_", at + 160 * US, 50 * US).kernel(NCCL, at + 170 * US, at + 520 * US, 300 * US)
    assert findings_of(builder.step(2, 2000 * US, 2000 * US), "DS016") == []


def gloo(*, count: int = 10, each: int = 90, cut: bool = False) -> TraceBuilder:
    """A trace of the CPU: line 7 waits for `count` sums of `each` µs that gloo runs on a thread of its own."""
    builder = TraceBuilder()
    for number in range(2):
        at = number * 2000 * US
        builder.step(number, at, 2000 * US).line(FILE, 5, "main", at, 600 * US).op("aten::mm", at + US, 590 * US)
        for row in range(count):
            start = at + (700 + 100 * row) * US
            if not (cut and number == 0 and row == 0):
                builder.line(FILE, 7, "main", start, 95 * US).op("c10d::allreduce_", start + US, 2 * US)
            builder.annotation("gloo:all_reduce", start + 4 * US, each * US, tid=OTHER)
    return builder


@pytest.mark.parametrize("cut", [False, True])
def test_gloo_s_sums_stand_at_the_line_that_asked_for_them(findings_of, cut):
    (found,) = findings_of(gloo(cut=cut), "DS015")
    assert (found.file, found.line) == (FILE, 7)
    assert found.evidence["collectives"] == 20 - cut
    # The line's 95 µs each, but for what the first of each step waited, and for one of ten.
    count, firsts = 20 - cut, 2 * 90 * US
    assert found.saving_ns == (count * 95 * US - firsts) * (count - 2) // count


def test_one_large_sum_of_gloo_is_exposed_and_not_small(findings_of):
    builder = gloo(count=1, each=600)
    assert findings_of(builder, "DS015") == []
    (found,) = findings_of(builder, "DS014")
    assert (found.line, found.evidence["exposed_ns"], found.saving_ns) == (7, 1200 * US, 2 * 590 * US)


def test_without_a_word_from_other_ranks_nothing_is_found(findings_of):
    builder = TraceBuilder().step(0, 0, 1000 * US).line(FILE, 5, "main", 0, 900 * US).op("aten::mm", 0, 800 * US)
    builder.op("nccl:all_to_all", 810 * US, 20 * US, tid=BACKWARD)
    for code in ("DS014", "DS015", "DS016"):
        assert findings_of(builder, code) == []
