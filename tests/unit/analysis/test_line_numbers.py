"""Every other number of a line, worked out by hand."""

from __future__ import annotations

import pytest

from deepscope.analysis.analysis import analyse
from deepscope.analysis.ownership.attribution import attribute
from deepscope.errors import OptionError
from deepscope.records import NO_OPERATOR, Numbers
from deepscope.records.columns import column_table
from deepscope.records.ranks import merge_profiles
from trace_builder import BACKWARD, TraceBuilder

FILE = "/home/me/train.py"


def scopes(*lines: tuple[int, int, int], **metadata: object) -> TraceBuilder:
    builder = TraceBuilder(**metadata)
    for line, start, duration in lines:
        builder.line(FILE, line, "main", start, duration)
    return builder


def test_every_number_that_a_line_can_have_is_filled(read):
    analysis = analyse(attribute(read(scopes((10, 0, 1000)).kernel("k", 1, 2000, 1))))
    assert set(analysis.columns) == set(Numbers.__struct_fields__)


def test_cpu_time_is_without_and_with_the_lines_called(profile_of, at):
    profile = profile_of(scopes((10, 0, 1000), (20, 100, 300), (30, 150, 50), (20, 500, 100)).kernel("k", 1, 2000, 1))
    assert [(at(profile, n).self_cpu_ns, at(profile, n).total_cpu_ns) for n in (10, 20, 30)] == [
        (600, 1000),
        (350, 400),
        (50, 50),
    ]


def test_recursion_counts_once_in_the_total_cpu_time(profile_of, at):
    profile = profile_of(scopes((20, 0, 1000), (20, 100, 300), (20, 150, 50)).kernel("k", 1, 2000, 1))
    assert (at(profile, 20).self_cpu_ns, at(profile, 20).total_cpu_ns) == (1000, 1000)


def test_a_backward_thread_adds_no_cpu_time_to_the_forward_line(profile_of, at):
    builder = scopes((10, 0, 500), (11, 600, 2000))
    builder.op("aten::mm", 100, 100, sequence=2).flow(100, 1000)
    builder.backward("MmBackward0", 1000, 800, 2).kernel("k", 1100, 3000, 5, tid=BACKWARD)
    profile = profile_of(builder)
    assert (at(profile, 10).total_cpu_ns, at(profile, 11).total_cpu_ns) == (500, 2000)
    assert profile.no_line.self_cpu_ns == 800


def test_the_recorders_own_cost_is_taken_off_and_stated(profile_of, at):
    own = {"lines": {"cost_ns": 60, "backend": "monitoring"}}
    profile = profile_of(scopes((10, 0, 1000), (20, 100, 300), (20, 500, 50), deepscope=own).kernel("k", 1, 2000, 1))
    assert (at(profile, 20).self_cpu_ns, at(profile, 20).recording_ns) == (350 - 120, 120)
    assert at(profile, 10).self_cpu_ns == 1000 - 350 - 60
    assert at(profile, 10).total_cpu_ns == at(profile, 10).self_cpu_ns + 230
    assert profile.totals.recording_ns == 180
    assert profile.trace.recording["backend"] == "monitoring"


def test_waits_that_lie_in_one_another_count_once(profile_of, at):
    builder = scopes((10, 0, 1000)).op("aten::_local_scalar_dense", 100, 500)
    builder.memcpy("DtoH", 4, 110, 300, 10).runtime("cudaStreamSynchronize", 200, 350)
    builder.runtime("cudaDeviceSynchronize", 700, 100)
    builder.runtime("cudaDeviceSynchronize", 700, 100, tid=9)
    profile = profile_of(builder)
    assert at(profile, 10).wait_ns == 600
    assert profile.no_line.wait_ns == 100
    assert profile.totals.wait_ns == 700


@pytest.mark.parametrize(("direction", "waited"), [("DtoH", 500), ("HtoD", 0), ("DtoD", 0)])
def test_a_copy_into_memory_that_is_not_pinned_is_there_when_its_call_returns(profile_of, at, direction, waited):
    copied = scopes((10, 0, 1000)).op("aten::copy_", 50, 600)
    copied.memcpy(direction, 4, 100, 560, 30, launch_duration=500)
    assert at(profile_of(copied), 10).wait_ns == waited


def test_nothing_waits_for_a_device_that_is_not_there(profile_of):
    assert profile_of(scopes((10, 0, 1000)).op("aten::_local_scalar_dense", 100, 500)).totals.wait_ns == 0


def test_idle_time_goes_to_the_line_that_the_training_thread_was_on(profile_of, at):
    builder = scopes((10, 0, 400), (20, 100, 200), (11, 400, 600)).step(0, 0, 1000)
    builder.kernel("a", 10, 150, 100).kernel("b", 20, 200, 300, stream=8)
    profile = profile_of(builder)
    assert profile.totals.busy_ns == 350
    assert profile.totals.idle_ns == 650
    assert [at(profile, n).idle_ns for n in (10, 20, 11)] == [100, 50, 500]


def test_each_device_idles_by_itself(profile_of):
    builder = scopes((10, 0, 1000)).step(0, 0, 1000)
    builder.kernel("a", 10, 100, 200).kernel("b", 20, 100, 600, device=1, stream=3)
    profile = profile_of(builder)
    assert (profile.totals.busy_ns, profile.totals.idle_ns) == (800, 1200)
    assert profile.lines[0].idle_ns == 1200


def test_work_after_the_last_step_is_neither_busy_nor_idle_in_it_but_counts_as_device_time(profile_of):
    builder = scopes((10, 0, 1000)).step(0, 0, 1000).kernel("late", 900, 5000, 77)
    profile = profile_of(builder)
    assert (profile.totals.device_ns, profile.totals.busy_ns, profile.totals.idle_ns) == (77, 0, 1000)
    assert profile.steps[0].device_ns == 77


def test_without_steps_the_window_is_from_the_first_to_the_last_event(profile_of):
    profile = profile_of(scopes((10, 100, 500)).kernel("k", 200, 1000, 50))
    assert (profile.totals.wall_ns, profile.totals.idle_ns) == (950, 900)


def test_copies_stand_by_direction_with_their_bytes(profile_of, at):
    builder = scopes((10, 0, 1000))
    builder.memcpy("HtoD", 100, 10, 2000, 5).memcpy("HtoD", 10, 20, 2100, 6).memcpy("DtoH", 7, 30, 2200, 8)
    builder.memcpy("DtoD", 3, 40, 2300, 9).kernel("Memset (Device)", 50, 2400, 4, category="gpu_memset")
    line = at(profile_of(builder), 10)
    assert (line.h2d_ns, line.h2d_bytes) == (11, 110)
    assert (line.d2h_ns, line.d2h_bytes) == (8, 7)
    assert (line.d2d_ns, line.d2d_bytes) == (9, 3)
    assert (line.launches, line.self_device_ns) == (0, 32)


def test_only_operators_that_a_line_itself_starts_are_counted(profile_of, at):
    builder = scopes((10, 0, 1000), (20, 500, 200)).op("aten::linear", 100, 200).op("aten::addmm", 120, 100)
    builder.op("aten::add", 400, 50).op("MyFunction", 490, 300).op("aten::mul", 550, 50).kernel("k", 560, 2000, 1)
    profile = profile_of(builder)
    assert (at(profile, 10).operators, at(profile, 20).operators, profile.totals.operators) == (3, 1, 4)


def test_bytes_are_allocated_freed_and_live_at_the_peak(profile_of, at):
    builder = scopes((10, 0, 100), (11, 100, 100), (12, 200, 100)).kernel("k", 10, 1000, 1)
    builder.memory(20, 1000, address=1).memory(120, 500, address=2).memory(130, -1000, address=1)
    builder.memory(140, 2000, address=3).memory(220, -500, address=2).memory(230, 64, address=1)
    builder.memory(150, 10_000, address=9, device_type=0)
    profile = profile_of(builder)
    assert [at(profile, n).bytes_allocated for n in (10, 11, 12)] == [1000, 2500, 64]
    assert [at(profile, n).bytes_freed for n in (10, 11, 12)] == [0, 1000, 500]
    assert [at(profile, n).peak_bytes for n in (10, 11, 12)] == [0, 2500, 0]
    assert profile.totals.peak_bytes == 2500


def test_what_was_live_before_the_window_is_part_of_the_peak_on_no_line(profile_of, at):
    builder = scopes((10, 0, 100)).kernel("k", 10, 1000, 1)
    builder.memory(20, 1000, address=1, total=71_000).memory(30, -1000, address=1, total=70_000)
    profile = profile_of(builder)
    assert (at(profile, 10).peak_bytes, profile.no_line.peak_bytes) == (1000, 70_000)
    assert profile.totals.peak_bytes == 71_000


def test_memory_freed_in_the_backward_pass_belongs_to_the_forward_line(profile_of, at):
    builder = scopes((10, 0, 500), (11, 600, 2000)).op("aten::mm", 100, 100, sequence=2).flow(100, 1000)
    builder.backward("MmBackward0", 1000, 800, 2).kernel("k", 1100, 3000, 5, tid=BACKWARD)
    builder.memory(110, 64, address=1).memory(1200, -64, address=1, tid=BACKWARD)
    assert at(profile_of(builder), 10).bytes_freed == 64


def test_a_collective_is_exposed_where_no_compute_of_its_device_overlaps_it(profile_of, at):
    builder = scopes((10, 0, 100)).kernel("ncclDevKernel_AllReduce_Sum", 10, 1000, 400, stream=9)
    builder.kernel("gemm", 20, 900, 250).kernel("gemm", 30, 1300, 50).kernel("gemm", 35, 1050, 300, device=1)
    builder.memcpy("DtoD", 1, 40, 1200, 20)
    line = at(profile_of(builder), 10)
    assert (line.collective_ns, line.collective_exposed_ns) == (400, 200)


def test_flops_of_operators_in_operators_count_once(profile_of, at):
    large, small = [[1], [1 << 20, 1 << 20], [1 << 20, 1 << 18]], [[1, 5], [5, 1]]
    builder = scopes((10, 0, 1000)).op("aten::addmm", 100, 500, dims=large).op("aten::mm", 200, 100, dims=small)
    builder.op("aten::mm", 700, 100, dims=small).kernel("k", 710, 2000, 10)
    profile = profile_of(builder)
    assert at(profile, 10).flops == (1 << 59) + 10
    assert profile.totals.flops == (1 << 59) + 10


def test_workers_time_stands_at_its_lines_and_in_no_other_number(profile_of, at):
    own = {
        "files": [{"path": FILE}],
        "workers": [
            {
                "pid": 7,
                "worker_id": 0,
                "lines": [[0, 70, "Data.__getitem__", 500, 3], [0, 10, "main", 5, 1]],
                "wall_ns": 900,
            },
            {
                "pid": 8,
                "worker_id": 1,
                "lines": [[0, 70, "Data.__getitem__", 700, 4, 300], [9, 1, "?", 1, 1, 1]],
                "wall_ns": 900,
            },
        ],
    }
    profile = profile_of(scopes((10, 0, 1000), deepscope=own).kernel("k", 10, 2000, 5))
    line = at(profile, 70)
    assert (line.worker_ns, line.function, line.self_cpu_ns, line.calls) == (1200, "Data.__getitem__", 0, 0)
    assert at(profile, 10).worker_ns == 5
    assert profile.totals.worker_ns == 1205
    assert line.worker_cpu_ns == 300, "of the worker that tells it; traces before it did had five numbers a line"
    assert profile.totals.worker_cpu_ns == 300


def test_a_workers_cpu_time_is_a_part_of_its_time_whatever_the_trace_says(profile_of, at):
    lines = [[0, 10, "f", 500, 1, 900], [0, 11, "f", 500, 1, -4], [0, 12, "f", 500, 1, "x"], [0, 13, "f", 500, 1, None]]
    own = {"files": [{"path": FILE}], "workers": [{"pid": 7, "worker_id": 0, "lines": lines, "wall_ns": 900}]}
    profile = profile_of(scopes((1, 0, 1000), deepscope=own).kernel("k", 10, 2000, 5))
    assert [(at(profile, line).worker_ns, at(profile, line).worker_cpu_ns) for line in (10, 11, 12, 13)] == [
        (500, 500), (500, 0), (500, 0), (500, 0),
    ]  # fmt: skip


def two_steps() -> TraceBuilder:
    builder = scopes((1, 0, 2000), (10, 100, 500), (10, 1100, 700)).step(3, 0, 1000).step(4, 1000, 1000)
    builder.kernel("a", 200, 300, 100).kernel("b", 900, 1950, 200).kernel("c", 1200, 1300, 300)
    builder.runtime("cudaDeviceSynchronize", 950, 100).memory(150, 10, address=1).memory(1150, 20, address=2)
    return builder


def test_an_event_belongs_to_the_step_of_its_launch(profile_of, at):
    third, fourth = profile_of(two_steps(), step=3), profile_of(two_steps(), step=4)
    assert (third.totals.device_ns, fourth.totals.device_ns) == (300, 300)
    assert (at(third, 10).self_device_ns, at(third, 1).self_device_ns) == (100, 200)
    assert at(fourth, 10).self_device_ns == 300
    assert [step.device_ns for step in profile_of(two_steps()).steps] == [300, 300]


def test_times_of_a_step_are_clipped_to_it_and_the_steps_add_up(profile_of, at):
    whole, third, fourth = (profile_of(two_steps(), step=n) for n in (None, 3, 4))
    assert [at(p, 1).self_cpu_ns for p in (whole, third, fourth)] == [800, 500, 300]
    assert [at(p, 1).wait_ns for p in (whole, third, fourth)] == [100, 50, 50]
    assert [p.totals.idle_ns for p in (whole, third, fourth)] == [900 + 650, 900, 650]
    assert [at(p, 10).bytes_allocated for p in (whole, third, fourth)] == [30, 10, 20]
    assert [p.totals.wall_ns for p in (whole, third, fourth)] == [2000, 1000, 1000]
    assert [step.number for step in third.steps] == [3]


def test_a_step_that_is_not_there_is_an_error_that_lists_those_that_are(profile_of):
    with pytest.raises(OptionError, match=r"step=9: no such step; it has 3, 4"):
        profile_of(two_steps(), step=9)


def test_the_functions_numbers_are_those_of_their_lines_and_totals_count_once(profile_of):
    builder = TraceBuilder().line(FILE, 10, "outer", 0, 1000, first_line=9)
    builder.line(FILE, 20, "inner", 100, 500, first_line=19).line(FILE, 21, "inner", 200, 100, first_line=19)
    builder.kernel("a", 110, 2000, 10).kernel("b", 210, 3000, 20)
    functions = {f.function: f for f in profile_of(builder).functions}
    assert (functions["inner"].line, functions["inner"].self_device_ns, functions["inner"].total_device_ns) == (
        19,
        30,
        30,
    )
    assert (functions["outer"].self_device_ns, functions["outer"].total_device_ns) == (0, 30)
    assert (functions["inner"].self_cpu_ns, functions["inner"].total_cpu_ns) == (500, 500)


def test_modules_have_their_backward_work_and_that_of_modules_below(profile_of):
    builder = scopes((10, 0, 1000), (11, 1000, 3000))
    builder.module("Net", "", 10, 900).module("Linear", "fc", 100, 300)
    builder.op("aten::mm", 150, 100, sequence=1).kernel("mm", 160, 5000, 40).flow(150, 2000)
    builder.backward("MmBackward0", 2000, 500, 1).kernel("back", 2100, 6000, 60, tid=BACKWARD)
    builder.op("aten::add", 500, 50).kernel("add", 510, 7000, 5)
    modules = {m.class_name: m for m in profile_of(builder).modules}
    linear, net = modules["Linear"], modules["Net"]
    assert (linear.path, linear.self_device_ns, linear.backward_device_ns, linear.total_cpu_ns) == ("fc", 100, 60, 300)
    assert (net.self_device_ns, net.total_device_ns, net.self_cpu_ns) == (5, 105, 600)


def test_operators_have_device_time_with_and_without_those_they_call(profile_of):
    builder = scopes((10, 0, 1000)).op("aten::linear", 100, 500).op("aten::addmm", 200, 200)
    builder.kernel("gemm", 250, 2000, 90).kernel("bias", 450, 3000, 6)
    operators = {op.name: op for op in profile_of(builder).operators}
    linear, addmm = operators["aten::linear"], operators["aten::addmm"]
    assert (linear.self_device_ns, linear.total_device_ns, linear.self_cpu_ns, linear.total_cpu_ns) == (6, 96, 300, 500)
    assert (addmm.self_device_ns, addmm.total_device_ns) == (90, 90)


@pytest.mark.parametrize("details", [(), ("shapes",)])
def test_device_work_without_an_operator_has_a_row_in_every_table_of_operators(profile_of, details):
    builder = scopes((10, 0, 1000)).op("aten::mm", 100, 50).kernel("k", 110, 2000, 10).kernel("graph", 300, 4000, 30)
    alone = profile_of(builder, details=details)
    for profile, whole in ((alone, 40), (merge_profiles([alone, alone]), 80)):
        name = "operators_in_detail" if details else "operators"
        found = {row.name: row.self_device_ns for row in getattr(profile, name)}
        assert list(found) == [NO_OPERATOR, "aten::mm"]
        exported = column_table(profile, name)
        assert dict(zip(*(exported.column(one).plain() for one in ("name", "self_device_ns")), strict=True)) == found
        assert sum(found.values()) == whole == profile.totals.device_ns


def test_kernels_stand_by_name_with_the_operator_that_launches_most_of_them(profile_of):
    builder = scopes((10, 0, 1000)).op("aten::mm", 100, 50).kernel("k", 110, 2000, 10).op("aten::bmm", 200, 50)
    builder.kernel("k", 210, 3000, 30).kernel("ncclKernel", 300, 4000, 5)
    kernels = {k.name: k for k in profile_of(builder).kernels}
    k = kernels["k"]
    assert (k.kind, k.calls, k.device_ns, k.mean_ns, k.max_ns, k.operator) == ("kernel", 2, 40, 20, 30, "aten::bmm")
    assert (kernels["ncclKernel"].kind, kernels["ncclKernel"].operator) == ("collective", "")


def test_the_largest_operators_and_kernels_of_a_line_come_first(profile_of, at):
    builder = scopes((10, 0, 1000)).op("aten::mm", 100, 50).kernel("k", 110, 2000, 10).op("aten::bmm", 200, 50)
    builder.kernel("g", 210, 3000, 30).kernel("g", 220, 4000, 3)
    line = at(profile_of(builder), 10)
    assert [(t.name, t.device_ns, t.count) for t in line.top_kernels] == [("g", 33, 2), ("k", 10, 1)]
    assert [t.name for t in line.top_operators] == ["aten::bmm", "aten::mm"]


def test_the_source_line_comes_from_the_traces_own_text(profile_of, at):
    own = {"files": [{"path": FILE, "sha256": "ab", "text": "import torch\nx = torch.ones(3)\n"}]}
    builder = TraceBuilder(deepscope=own)
    builder.files = [{"path": FILE}]
    profile = profile_of(builder.line(FILE, 2, "<module>", 0, 100).kernel("k", 10, 2000, 5))
    assert at(profile, 2).text == "x = torch.ones(3)"
    assert profile.files[FILE].sha256 == "ab"


def test_an_empty_trace_has_a_profile_of_zeros(profile_of):
    profile = profile_of(TraceBuilder())
    assert (profile.metric, profile.totals.device_ns, profile.totals.wall_ns, profile.lines) == ("cpu_self", 0, 0, [])
    assert profile.resolved.ratio == 1.0


@pytest.mark.parametrize(
    "own",
    [
        {"lines": {"cost_ns": 1e300}},
        {"lines": {"cost_ns": -5}},
        {"workers": [{"lines": [[0, 3, "f", 10**40]]}]},
        {"workers": [{"lines": [[0, -3, "f", 5], [0, 10**40, "f", 5], [0, 3, "f", -5]]}]},
        {"rank": "x", "world_size": None, "git": 1, "device": 7, "schedule": [], "versions": 1, "run_id": {}},
    ],
)
def test_nonsense_in_the_recorders_account_adds_nothing(profile_of, own):
    builder = TraceBuilder(deepscope=own).line(FILE, 3, "f", 0, 100).op("aten::mm", 10, 20).kernel("gemm", 12, 50, 7)
    profile = profile_of(builder)
    assert [(line.line, line.self_device_ns, line.worker_ns) for line in profile.lines] == [(3, 7, 0)]
    assert 0 <= profile.lines[0].self_cpu_ns <= 100
