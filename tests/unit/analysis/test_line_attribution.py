"""Who owns device time, worked out by hand for every rule of docs/numbers.md."""

from __future__ import annotations

import pytest

from trace_builder import BACKWARD, TraceBuilder

FILE = "/home/me/train.py"


def scopes(*lines: tuple[int, int, int]) -> TraceBuilder:
    """Line scopes (line, start, duration) on the main thread, all of one function."""
    builder = TraceBuilder()
    for line, start, duration in lines:
        builder.line(FILE, line, "main", start, duration)
    return builder


def test_a_kernel_belongs_to_the_innermost_line_and_counts_in_the_total_of_its_callers(profile_of, at):
    builder = scopes((10, 0, 1000), (20, 100, 300))
    builder.op("aten::mm", 150, 100).kernel("mm", 200, 5000, 70)
    builder.op("aten::add", 500, 100).kernel("add", 550, 6000, 9)
    profile = profile_of(builder)
    assert (at(profile, 20).self_device_ns, at(profile, 20).total_device_ns) == (70, 70)
    assert (at(profile, 10).self_device_ns, at(profile, 10).total_device_ns) == (9, 79)
    assert at(profile, 20).exact
    assert at(profile, 20).launches == 1
    assert profile.resolved.line_ns == 79


def test_work_that_no_line_launched_stands_under_no_line(profile_of):
    profile = profile_of(scopes((10, 0, 100)).kernel("k", 500, 600, 33))
    assert profile.no_line.self_device_ns == 33
    assert profile.resolved.none_ns == 33


def test_recursion_counts_once_in_the_total(profile_of, at):
    builder = scopes((10, 0, 1000), (20, 10, 900), (20, 20, 800), (20, 30, 700))
    builder.kernel("k", 40, 5000, 50)
    builder.kernel("k", 850, 6000, 7)
    profile = profile_of(builder)
    assert (at(profile, 20).self_device_ns, at(profile, 20).total_device_ns) == (57, 57)
    assert at(profile, 10).total_device_ns == 57
    assert at(profile, 20).calls == 3


def test_lines_of_mutual_recursion_count_each_event_once(profile_of, at):
    builder = scopes((10, 0, 1000), (20, 10, 900), (10, 20, 800), (20, 30, 700)).kernel("k", 40, 5000, 50)
    profile = profile_of(builder)
    assert [at(profile, n).total_device_ns for n in (10, 20)] == [50, 50]


def training_step() -> TraceBuilder:
    """Line 10 calls the model, whose line 50 multiplies; line 11 calls `backward()`, run on a thread of its own."""
    builder = scopes((1, 0, 10_000), (10, 100, 900), (50, 200, 300), (11, 1000, 5000))
    builder.op("aten::mm", 250, 100, sequence=7).kernel("mm", 300, 20_000, 40)
    builder.flow(250, 2000)
    builder.backward("MmBackward0", 2000, 500, 7)
    builder.op("aten::mm", 2100, 200, tid=BACKWARD).kernel("mm_back", 2150, 21_000, 80, tid=BACKWARD)
    return builder


def test_backward_work_belongs_to_the_forward_line(profile_of, at):
    profile = profile_of(training_step())
    line = at(profile, 50)
    assert (line.self_device_ns, line.backward_device_ns) == (120, 80)
    assert at(profile, 11).self_device_ns == 0


def test_the_stack_of_backward_work_joins_the_forward_stack_and_that_of_the_backward_call(profile_of, at):
    profile = profile_of(training_step())
    assert at(profile, 10).total_device_ns == 120
    assert at(profile, 11).total_device_ns == 80
    assert at(profile, 1).total_device_ns == 120
    backward = [node for node in profile.call_tree if node.backward_device_ns]
    (node,) = backward
    path = []
    while True:
        path.append(profile.lines[node.line].line)
        if node.parent < 0:
            break
        node = profile.call_tree[node.parent]
    assert path == [50, 10, 11, 1]


def test_backward_work_without_a_forward_goes_to_the_line_that_called_backward(profile_of, at):
    builder = training_step()
    builder.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 3000, 100, tid=BACKWARD)
    builder.op("torch::autograd::AccumulateGrad", 3001, 98, tid=BACKWARD)
    builder.op("aten::add_", 3010, 50, tid=BACKWARD).kernel("add_", 3020, 22_000, 5, tid=BACKWARD)
    profile = profile_of(builder)
    assert (at(profile, 11).self_device_ns, at(profile, 11).backward_device_ns) == (5, 5)
    assert at(profile, 11).total_device_ns == 85


def test_backward_work_whose_forward_ran_on_no_line_goes_to_the_backward_call(profile_of, at):
    builder = scopes((11, 1000, 5000))
    builder.op("aten::mm", 250, 100, sequence=7).flow(250, 2000)
    builder.backward("MmBackward0", 2000, 500, 7).kernel("k", 2100, 9000, 30, tid=BACKWARD)
    profile = profile_of(builder)
    assert (at(profile, 11).self_device_ns, at(profile, 11).total_device_ns) == (30, 30)


def test_the_backward_call_is_found_on_the_thread_of_the_forward_not_on_the_training_thread(profile_of, at):
    builder = scopes((1, 0, 10_000))
    builder.step(0, 0, 10_000)
    builder.line(FILE, 30, "worker", 100, 900, tid=777).line(FILE, 31, "worker", 1000, 5000, tid=777)
    builder.op("aten::mm", 250, 100, sequence=7, tid=777).flow(250, 2000, tid=777)
    builder.backward("MmBackward0", 2000, 500, 7, fwd_thread=3).kernel("back", 2100, 9000, 30, tid=BACKWARD)
    accumulate = "torch::autograd::AccumulateGrad"
    builder.op(f"autograd::engine::evaluate_function: {accumulate}", 3000, 100, tid=BACKWARD, sequence=0, fwd_thread=3)
    builder.kernel("add_", 3020, 9500, 5, tid=BACKWARD)
    profile = profile_of(builder)
    assert at(profile, 30).self_device_ns == 30
    assert at(profile, 31).total_device_ns == 35


def test_backward_on_the_calling_thread_belongs_to_the_forward_line_all_the_same(profile_of, at):
    builder = scopes((10, 100, 900), (11, 1000, 5000))
    builder.op("aten::mm", 250, 100, sequence=7).flow(250, 2000, backward_tid=101)
    builder.backward("MmBackward0", 2000, 500, 7, tid=101).kernel("back", 2100, 9000, 30)
    profile = profile_of(builder)
    assert (at(profile, 10).self_device_ns, at(profile, 10).backward_device_ns) == (30, 30)
    assert at(profile, 11).total_device_ns == 30
    assert at(profile, 11).self_device_ns == 0


def test_one_line_that_runs_forward_and_backward_has_both(profile_of, at):
    builder = scopes((10, 100, 9000))
    builder.op("aten::mm", 250, 100, sequence=7).kernel("mm", 300, 20_000, 40)
    builder.flow(250, 2000)
    builder.backward("MmBackward0", 2000, 500, 7).kernel("back", 2100, 21_000, 80, tid=BACKWARD)
    line = at(profile_of(builder), 10)
    assert (line.self_device_ns, line.total_device_ns, line.backward_device_ns) == (120, 120, 80)


def test_recomputed_lines_in_the_backward_own_their_part(profile_of, at):
    """Activation checkpointing: line 50's block runs again below the `CheckpointFunctionBackward` of line 10."""
    builder = scopes((10, 100, 900), (11, 1000, 8000))
    builder.op("CheckpointFunction", 200, 300, sequence=4).flow(200, 2000)
    builder.backward("CheckpointFunctionBackward", 2000, 4000, 4)
    builder.line(FILE, 50, "block", 2100, 500, tid=BACKWARD)
    builder.op("aten::mm", 2200, 100, sequence=1, tid=BACKWARD).kernel("again", 2250, 20_000, 60, tid=BACKWARD)
    builder.flow(2200, 3000, tid=BACKWARD)
    builder.backward("MmBackward0", 3000, 500, 1, fwd_thread=2).kernel("inner", 3100, 21_000, 90, tid=BACKWARD)
    builder.kernel("glue", 4000, 22_000, 3, tid=BACKWARD)
    profile = profile_of(builder)
    assert (at(profile, 50).self_device_ns, at(profile, 50).backward_device_ns) == (150, 150)
    assert at(profile, 10).self_device_ns == 3
    assert at(profile, 10).total_device_ns == 153
    assert at(profile, 11).total_device_ns == 153


def test_double_backward_leads_back_to_the_first_forward_line(profile_of, at):
    """`grad(create_graph=True)` on line 11 ran an operator for line 10's node; that one's node runs on line 12."""
    builder = scopes((10, 100, 800), (11, 1000, 2000), (12, 4000, 3000))
    builder.op("aten::mul", 200, 50, sequence=1).flow(200, 1500)
    builder.backward("MulBackward0", 1500, 500, 1)
    builder.op("aten::mul", 1600, 100, sequence=5, tid=BACKWARD).kernel("first", 1650, 20_000, 10, tid=BACKWARD)
    builder.flow(1600, 4500, tid=BACKWARD)
    builder.backward("MulBackward0", 4500, 500, 5, fwd_thread=2).kernel("second", 4600, 21_000, 20, tid=BACKWARD)
    profile = profile_of(builder)
    assert (at(profile, 10).self_device_ns, at(profile, 10).backward_device_ns) == (30, 30)
    assert at(profile, 12).total_device_ns == 20
    assert at(profile, 11).total_device_ns == 30


def test_what_no_line_owns_is_in_no_total_though_a_call_of_backward_lies_further_above(profile_of, at):
    """Neither the first forward nor the second `backward()` ran on a line; the first `backward()` did, on line 11."""
    builder = scopes((11, 1000, 2000)).op("aten::mul", 200, 50, sequence=1).flow(200, 1500)
    builder.backward("MulBackward0", 1500, 500, 1)
    builder.op("aten::mul", 1600, 100, sequence=5, tid=BACKWARD).kernel("first", 1650, 20_000, 10, tid=BACKWARD)
    builder.flow(1600, 4500, tid=BACKWARD)
    builder.backward("MulBackward0", 4500, 500, 5, fwd_thread=2).kernel("second", 4600, 21_000, 20, tid=BACKWARD)
    profile = profile_of(builder)
    assert (at(profile, 11).self_device_ns, at(profile, 11).total_device_ns) == (10, 10)
    assert (profile.no_line.self_device_ns, profile.no_line.total_device_ns) == (20, 20)


def test_a_thread_of_the_user_has_its_own_stack(profile_of, at):
    builder = scopes((10, 0, 1000), (11, 100, 500))
    builder.line(FILE, 90, "prefetch", 50, 800, tid=555)
    builder.memcpy("HtoD", 4096, 200, 3000, 25, tid=555)
    profile = profile_of(builder)
    assert at(profile, 90).self_device_ns == 25
    assert at(profile, 10).total_device_ns == 0


def test_a_generator_resumed_elsewhere_counts_under_the_line_that_resumed_it(profile_of, at):
    builder = scopes((10, 0, 400), (70, 100, 200), (11, 500, 400), (70, 600, 200))
    builder.kernel("a", 150, 5000, 10).kernel("b", 650, 6000, 20)
    profile = profile_of(builder)
    assert (at(profile, 70).self_device_ns, at(profile, 70).calls) == (30, 2)
    assert [at(profile, n).total_device_ns for n in (10, 11)] == [10, 20]


def test_all_kernels_of_a_replayed_graph_belong_to_the_line_of_the_launch(profile_of, at):
    builder = scopes((10, 0, 1000)).runtime("cudaGraphLaunch", 100, 50, correlation=900)
    for i in range(5):
        builder.orphan(f"k{i}", 2000 + 100 * i, 30, correlation=900)
    profile = profile_of(builder)
    assert (at(profile, 10).self_device_ns, at(profile, 10).launches) == (150, 5)


def test_work_without_a_call_in_the_file_is_found_by_the_operators_id(profile_of, at):
    builder = scopes((10, 0, 1000)).op("aten::mm", 100, 50).kernel("k", 120, 2000, 10)
    builder.orphan("lost", 3000, 44, correlation=4242, **{"External id": 1})
    assert at(profile_of(builder), 10).self_device_ns == 54


def test_two_functions_on_one_line_are_one_line_named_by_the_outer(profile_of, at):
    builder = (
        TraceBuilder()
        .line(FILE, 10, "main", 0, 1000, first_line=3)
        .line(FILE, 10, "main.<lambda>", 100, 500, first_line=10)
    )
    builder.kernel("k", 200, 3000, 10)
    profile = profile_of(builder)
    assert (at(profile, 10).function, at(profile, 10).calls, at(profile, 10).total_device_ns) == ("main", 2, 10)


def test_a_compiled_frames_definition_line_gives_its_work_to_the_caller(profile_of, at):
    builder = TraceBuilder().line(FILE, 10, "main", 0, 1000)
    builder.line(FILE, 40, "Net.forward", 100, 800, first_line=40)
    builder.op("Torch-Compiled Region: 0/0", 200, 600).kernel("triton_poi_fused_0", 300, 5000, 77)
    profile = profile_of(builder)
    assert (at(profile, 10).self_device_ns, at(profile, 10).in_compiled_region) == (77, True)
    assert [line.line for line in profile.lines] == [10]


def test_without_device_events_the_operators_own_time_takes_their_place(profile_of, at):
    builder = scopes((10, 0, 1000), (11, 1000, 1000))
    builder.op("aten::linear", 100, 500, sequence=3).op("aten::addmm", 200, 300, sequence=3)
    builder.flow(100, 1100, backward_tid=101)
    builder.backward("AddmmBackward0", 1100, 400, 3, tid=101)
    profile = profile_of(builder)
    assert profile.metric == "cpu_self"
    assert (at(profile, 10).self_device_ns, at(profile, 10).backward_device_ns) == (900, 400)
    assert at(profile, 10).launches == 0
    assert (profile.totals.device_ns, profile.totals.idle_ns) == (900, 0)
    assert {op.name: op.self_device_ns for op in profile.operators}["aten::addmm"] == 300


@pytest.mark.parametrize("source", ["scopes", "frames"])
def test_an_annotation_over_several_lines_encloses_none_that_outlives_its_first(profile_of, at, source):
    """`with record_function("x"):` on line 2 begins inside that line's scope, which ends when line 3 starts."""
    builder = TraceBuilder()

    def place(line, start, duration):
        if source == "scopes":
            builder.line(FILE, line, "main", start, duration)
        else:
            builder.frame(f"{FILE}({line}): f{line}", start, duration)

    place(1, 0, 1000)
    place(2, 10, 40)
    builder.annotation("outer", 20, 300).annotation("inner", 30, 150)
    builder.kernel("early", 40, 900, 7)
    place(3, 50, 100)
    builder.op("aten::mm", 60, 50).kernel("gemm", 70, 2000, 300)
    builder.kernel("between", 150, 2400, 11)
    place(4, 160, 100)
    builder.op("aten::add", 200, 20).kernel("add", 205, 3000, 30)
    profile = profile_of(builder)
    found = {line.line: (line.self_device_ns, line.total_device_ns, line.self_cpu_ns) for line in profile.lines}
    assert found == {1: (11, 348, 760), 2: (7, 7, 40), 3: (300, 300, 100), 4: (30, 30, 100)}


def test_memory_taken_right_behind_a_step_or_an_annotation_stays_with_the_open_line(profile_of):
    """Neither has a line of its own, and the annotation began on a line that has ended."""
    builder = scopes((1, 0, 1000), (2, 10, 40)).step(1, 5, 900).annotation("x", 20, 300)
    builder.memory(8, 64, address=1).memory(100, 128, address=2)
    builder.op("aten::mm", 500, 10).kernel("mm", 505, 600, 10)
    profile = profile_of(builder)
    assert [(line.line, line.bytes_allocated) for line in profile.lines if line.bytes_allocated] == [(1, 192)]
    assert profile.no_line.bytes_allocated == 0


@pytest.mark.parametrize("with_backward", [True, False])
def test_what_torchscript_forked_belongs_to_the_line_that_was_open_then(profile_of, at, with_backward):
    builder = scopes((10, 0, 1000), (11, 1000, 500)).step(0, 0, 1500).op("both", 100, 800)
    builder.op("<forked function>", 200, 300, tid=7).op("aten::mm", 210, 100, tid=7).kernel("k", 220, 5000, 60, tid=7)
    builder.op("aten::add", 600, 50, tid=7).kernel("after the wait", 610, 6000, 4, tid=7)
    if with_backward:
        builder.op("aten::a", 900, 10, sequence=1).flow(900, 1100, backward_tid=101)
        builder.backward("ABackward0", 1100, 200, 1, tid=101)
    profile = profile_of(builder)
    assert (at(profile, 10).self_device_ns, profile.no_line.self_device_ns) == (64, 0)


def test_what_torchscript_goes_on_with_on_a_third_thread_belongs_to_the_line_that_forked(profile_of, at):
    """Thread 8 of its pool ran no forked function; what else it does, while line 11 is open, is nobody's."""
    builder = scopes((10, 0, 1000), (11, 1000, 500)).step(0, 0, 1500).op("both", 100, 800)
    builder.op("<forked function>", 200, 300, tid=7)
    builder.op("aten::log1p", 600, 50, tid=8, sequence=1).kernel("after the wait", 610, 6000, 4, tid=8)
    builder.op("aten::add", 1050, 20, tid=8).kernel("later", 1060, 7000, 9, tid=8)
    builder.flow(600, 1200, tid=8, backward_tid=101)
    builder.backward("Log1PBackward0", 1200, 200, 1, tid=101).kernel("back", 1250, 8000, 30, tid=101)
    profile = profile_of(builder)
    assert (at(profile, 10).self_device_ns, at(profile, 10).backward_device_ns) == (34, 30)
    assert (at(profile, 11).self_device_ns, profile.no_line.self_device_ns) == (0, 9)
