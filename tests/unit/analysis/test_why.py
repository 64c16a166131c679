"""The causes of a line's cost on traces built by hand: each nanosecond has one."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.peaks import peaks_of
from deepscope.analysis.verdict import judge
from deepscope.records import Line, Profile, Rate, Why
from trace_builder import BACKWARD, TraceBuilder

FILE = "/home/me/train.py"
US = 1000
H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}


def cost(why: Why) -> int:
    """All causes together."""
    figures = {"rates", "kernels", "delay_ns", "queued", "occupied_ns", "occupancy_known_ns"}
    times = [getattr(why, name) for name in Why.__struct_fields__ if name not in figures]
    return sum(times) + sum(rate.device_ns for rate in why.rates)


def causes(line: Line) -> dict[str, int]:
    """The causes that are not 0; `rated` for all work that a roof tells of."""
    assert cost(line.why) == line.cost_ns - line.framework_ns
    figures = {"rates", "kernels", "delay_ns", "queued", "occupied_ns", "occupancy_known_ns"}
    found = {name: getattr(line.why, name) for name in Why.__struct_fields__ if name not in figures}
    found["rated"] = sum(rate.device_ns for rate in line.why.rates)
    return {name: value for name, value in found.items() if value}


def judged(profile: Profile, peaks: str = "") -> Profile:
    judge(profile, peaks_of(profile.trace.device, peaks))
    return profile


def product(builder: TraceBuilder, start: int, size: int, dtype: str, device: int, duration: int, **more: Any) -> None:
    """A square product at `start`, whose kernel runs from `device` on."""
    builder.op("aten::mm", start, 20 * US, dims=[[size, size]] * 2, **{"Input type": [dtype] * 2})
    builder.kernel(more.pop("kernel", "gemm"), start + 5 * US, device, duration, **more)


def test_a_large_product_in_bfloat16_is_compute_bound_and_says_how_fast(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    product(builder, 10 * US, 4096, "c10::BFloat16", 40 * US, 200 * US)
    line = at(judged(profile_of(builder)), 10)
    assert line.verdict == "compute-bound"
    # 2 * 4096^3 / (3 * 4096^2 * 2) = 1365 operations a byte, from 2^10 on.
    assert line.why.rates == [Rate("bfloat16", 10, 200 * US, 2 * 4096**3, 3 * 2 * 4096**2)]
    assert causes(line) == {"rated": 200 * US, "launch_ns": 20 * US, "host_ns": line.idle_ns - 20 * US}


def test_float32_counts_as_tf32_where_the_kernel_says_so(profile_of, at):
    for kernel, dtype in (("ampere_sgemm_128x64_tn", "float32"), ("cutlass_80_tensorop_s1688gemm_128x128", "tf32"),
                          ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn", "tf32")):  # fmt: skip
        builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
        product(builder, 10 * US, 4096, "float", 40 * US, 400 * US, kernel=kernel)
        assert [rate.dtype for rate in at(profile_of(builder), 10).why.rates] == [dtype]


def test_element_wise_work_is_memory_bound(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    builder.op("aten::add", 10 * US, 20 * US, dims=[[1 << 26], [1 << 26], []],
               **{"Input type": ["float", "float", "Scalar"]})  # fmt: skip
    builder.kernel("elementwise", 12 * US, 30 * US, 300 * US)
    line = at(judged(profile_of(builder)), 10)
    assert (line.verdict, line.why.rates) == ("memory-bound", [Rate("", 0, 300 * US, 0, 3 * 4 << 26)])


def test_short_kernels_and_idling_while_launching_are_launch_bound(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 1000 * US)
    for i in range(20):
        builder.op("aten::add", i * 50 * US, 40 * US).kernel("tiny", (i * 50 + 30) * US, (i * 50 + 35) * US, 2 * US)
    line = at(judged(profile_of(builder)), 10)
    assert line.verdict == "launch-bound"
    # In each round of 50 µs an operator runs for 40, of which the kernel takes 2; 10 are Python's.
    assert causes(line) == {"short_ns": 40 * US, "launch_ns": 20 * 38 * US, "host_ns": 20 * 10 * US}
    assert (line.why.kernels, line.why.delay_ns, line.why.queued) == (20, 20 * 5 * US, 0)


def test_python_between_the_launches_is_host_bound(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 1000 * US)
    builder.op("aten::add", 0, 10 * US).kernel("first", 5 * US, 10 * US, 20 * US)
    builder.op("aten::sort", 100 * US, 200 * US)  # on the CPU: it launches nothing
    builder.op("aten::add", 900 * US, 10 * US).kernel("last", 905 * US, 910 * US, 20 * US)
    line = at(judged(profile_of(builder)), 10)
    assert line.verdict == "host-bound"
    assert causes(line) == {"unknown_ns": 40 * US, "launch_ns": 20 * US, "host_ns": 940 * US}


def test_what_autograds_thread_launches_meanwhile_counts_as_launching(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 1000 * US)
    builder.op("aten::mul", 0, 10 * US, sequence=3).kernel("forward", 5 * US, 10 * US, 10 * US)
    builder.backward("MulBackward0", 100 * US, 700 * US, 3)
    builder.kernel("backward", 750 * US, 790 * US, 10 * US, tid=BACKWARD)
    line = at(profile_of(builder), 10)
    assert causes(line) == {"unknown_ns": 20 * US, "launch_ns": 700 * US, "host_ns": 280 * US}


def test_a_wait_for_the_device_while_it_idles_is_waiting(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 1000 * US)
    builder.op("aten::add", 0, 10 * US).kernel("first", 5 * US, 10 * US, 20 * US)
    builder.runtime("cudaStreamSynchronize", 15 * US, 900 * US)
    line = at(judged(profile_of(builder)), 10)
    assert line.verdict == "waiting"
    assert causes(line) == {"unknown_ns": 20 * US, "launch_ns": 10 * US, "waiting_ns": 885 * US, "host_ns": 85 * US}


def test_loading_and_copies_to_the_device_are_data(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 1000 * US)
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 600 * US)
    builder.op("aten::copy_", 700 * US, 200 * US).memcpy("HtoD", 1 << 20, 710 * US, 720 * US, 50 * US)
    builder.kernel("hides_half", 950 * US, 745 * US, 100 * US, stream=8)
    line = at(judged(profile_of(builder)), 10)
    assert line.verdict == "data"
    assert causes(line) == {
        "copies_ns": 25 * US, "hidden_ns": 25 * US, "unknown_ns": 100 * US,
        "data_ns": 600 * US + 20 * US + 55 * US, "launch_ns": US // 1000, "host_ns": 200 * US - US // 1000,
    }  # fmt: skip


def test_collectives_that_nothing_hides_are_communication(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", US, 2 * US, 98 * US, stream=20)
    builder.kernel("compute", 3 * US, 10 * US, 30 * US)
    line = at(judged(profile_of(builder)), 10)
    assert line.verdict == "communication"
    assert (line.why.communication_ns, line.why.hidden_ns, line.why.unknown_ns) == (68 * US, 30 * US, 30 * US)


def test_copies_and_fills_on_the_device_move_their_bytes(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    builder.memcpy("DtoD", 1 << 20, US, 10 * US, 10 * US)
    builder.kernel("Memset (Device)", 3 * US, 20 * US, 10 * US, category="gpu_memset", bytes=1 << 20)
    assert at(profile_of(builder), 10).why.rates == [Rate("", 0, 20 * US, 0, 3 << 20)]


def test_what_is_launched_before_and_not_finished_is_queued(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    for i in range(4):  # launched at 0, 10, 20 and 30 µs; each runs 25 µs, one after another
        builder.kernel("k", i * 10 * US, (5 + 25 * i) * US, 25 * US)
    why = at(profile_of(builder), 10).why
    # At 10 µs one is queued, at 20 µs two. The first ended at 30 µs: of three two are left.
    assert (why.kernels, why.queued) == (4, 0 + 1 + 2 + 2)
    assert why.delay_ns == (5 + 20 + 35 + 50) * US


def test_queues_of_devices_are_apart(profile_of, at):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    for i in range(4):
        builder.kernel("k", i * 10 * US, 50 * US, 25 * US, device=i)
    assert at(profile_of(builder), 10).why.queued == 0


@pytest.mark.parametrize("junk", ["full", 1e30, -7, None, [], 3000])
def test_occupancy_is_weighted_by_time_and_junk_is_none(profile_of, at, junk):
    builder = TraceBuilder(**H100).line(FILE, 10, "main", 0, 100 * US)
    builder.kernel("a", US, 10 * US, 30 * US, **{"est. achieved occupancy %": 50})
    builder.kernel("b", 2 * US, 40 * US, 10 * US, **{"est. achieved occupancy %": 10})
    builder.kernel("c", 3 * US, 50 * US, 10 * US)
    why = at(profile_of(builder), 10).why
    assert (why.occupied_ns, why.occupancy_known_ns) == (16 * US, 40 * US)
    builder.kernel("d", 4 * US, 60 * US, 10 * US, **{"est. achieved occupancy %": junk})
    assert 0 <= at(profile_of(builder), 10).why.occupied_ns <= 26 * US


def test_a_step_has_the_causes_of_its_own_work(profile_of, at):
    builder = TraceBuilder(**H100)
    for number in range(2):
        begin = number * 1000 * US
        builder.step(number, begin, 1000 * US).line(FILE, 10, "main", begin, 1000 * US)
        product(builder, begin + 10 * US, 4096, "c10::BFloat16", begin + 40 * US, 200 * US + number)
    for number in range(2):
        (rate,) = at(profile_of(builder, step=number), 10).why.rates
        assert (rate.device_ns, rate.flops) == (200 * US + number, 2 * 4096**3)
    assert sum(rate.flops for rate in at(profile_of(builder), 10).why.rates) == 4 * 4096**3


def on_cpu() -> TraceBuilder:
    """400 µs in a product, 20 µs in ten small operators, 80 µs of Python."""
    builder = TraceBuilder().line(FILE, 10, "main", 0, 500 * US)
    builder.op("aten::mm", 0, 400 * US, dims=[[256, 256]] * 2, **{"Input type": ["float"] * 2})
    for i in range(10):
        builder.op("aten::relu", (400 + 10 * i) * US, 2 * US, dims=[[4]], **{"Input type": ["float"]})
    return builder


def test_on_the_cpu_small_operators_are_dispatch_and_the_rest_is_pythons(profile_of, at):
    profile = profile_of(on_cpu())
    line = at(profile, 10)
    assert causes(line) == {"rated": 400 * US, "short_ns": 20 * US, "host_ns": 80 * US}
    assert judged(profile).lines[0].verdict == ""
    assert judged(profile, "fp32=0.1,bandwidth=0.02").lines[0].verdict == "compute-bound"
    assert judged(profile, "fp32=1000,bandwidth=0.001").lines[0].verdict == "memory-bound"
