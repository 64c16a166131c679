"""Partners of backward work, worked out by hand."""

import pytest

from deepscope.trace.joins.backward import backward_partners
from deepscope.trace.read import read_trace
from trace_builder import BACKWARD, MAIN, TraceBuilder


@pytest.fixture
def partners(tmp_path):
    """Root's (name, start) → start of its forward operator, or None."""

    def run(builder):
        trace = read_trace(builder.write(tmp_path / "t.json"))
        start = trace.events.start_ns.tolist()
        roots, found = (column.tolist() for column in backward_partners(trace))
        name = [trace.strings[i].removeprefix("autograd::engine::evaluate_function: ") for i in trace.events.name]
        return {(name[r], start[r]): start[p] if p >= 0 else None for r, p in zip(roots, found, strict=True)}

    return run


def test_the_partner_has_the_same_number(partners):
    builder = TraceBuilder().op("aten::mm", 0, 5, sequence=1).op("aten::relu", 10, 5, sequence=2)
    builder.backward("ReluBackward0", 100, 9, 2).backward("MmBackward0", 110, 9, 1)
    assert partners(builder) == {("ReluBackward0", 100): 10, ("MmBackward0", 110): 0}


def test_of_operators_that_share_a_number_the_latest_made_the_node(partners):
    builder = TraceBuilder().op("aten::clone", 0, 5, sequence=7).op("aten::relu", 10, 5, sequence=7)
    assert partners(builder.backward("ReluBackward0", 100, 9, 7)) == {("ReluBackward0", 100): 10}


def test_without_its_own_number_the_largest_below_counts(partners):
    builder = TraceBuilder()
    for start, number in ((0, 3), (10, 5), (20, 9)):
        builder.op("aten::a", start, 5, sequence=number)
    assert partners(builder.backward("CopySlices", 100, 9, 7)) == {("CopySlices", 100): 10}


def test_a_number_before_all_of_the_file_has_no_partner(partners):
    builder = TraceBuilder().op("aten::a", 0, 5, sequence=30).backward("MmBackward0", 100, 9, 7)
    assert partners(builder) == {("MmBackward0", 100): None}


def test_a_later_operator_is_no_partner(partners):
    builder = TraceBuilder().op("aten::a", 0, 5, sequence=6).op("aten::b", 500, 5, sequence=7)
    assert partners(builder.backward("MmBackward0", 100, 9, 7)) == {("MmBackward0", 100): 0}


def test_a_graph_of_torchscript_goes_with_the_first_operator_after_it_took_its_number(partners):
    name = "torch::jit::(anonymous namespace)::DifferentiableGraphBackward"
    builder = TraceBuilder().op("aten::sin", 0, 5, sequence=6).op("aten::detach", 10, 5, sequence=7)
    builder.op("aten::detach", 20, 5, sequence=8).op("aten::mul", 30, 5, sequence=8)
    assert partners(builder.backward(name, 100, 9, 7)) == {(name, 100): 20}


def test_a_graph_of_torchscript_whose_own_operators_are_not_there_has_no_partner(partners):
    name = "torch::jit::(anonymous namespace)::DifferentiableGraphBackward"
    builder = TraceBuilder().op("aten::sin", 0, 5, sequence=7).op("aten::cos", 10, 5, sequence=9)
    assert partners(builder.backward(name, 100, 9, 7)) == {(name, 100): None}


def test_a_forward_thread_that_was_not_recorded_is_no_other_one(partners):
    builder = TraceBuilder().op("aten::a", 0, 5, sequence=1).op("aten::b", 10, 5, sequence=2)
    builder.backward("BBackward0", 100, 9, 2).backward("CBackward0", 200, 9, 1, fwd_thread=4).flow(10, 100)
    assert partners(builder) == {("BBackward0", 100): 10, ("CBackward0", 200): None}


def test_leaves_have_no_partner(partners):
    builder = TraceBuilder().op("aten::a", 0, 5, sequence=6)
    name = "torch::autograd::AccumulateGrad"
    builder.op(f"autograd::engine::evaluate_function: {name}", 100, 9, tid=BACKWARD).op(name, 101, 7, tid=BACKWARD)
    assert partners(builder) == {(name, 100): None}


def test_arrows_say_which_thread_a_number_belongs_to(partners):
    builder = TraceBuilder().op("aten::a", 0, 5, sequence=1, tid=11).op("aten::b", 2, 5, sequence=1, tid=12)
    builder.op("aten::more", 9, 1, sequence=2, tid=12)
    builder.backward("ABackward0", 100, 9, 1, fwd_thread=4).backward("BBackward0", 200, 9, 1, fwd_thread=5)
    builder.flow(0, 100, tid=11).flow(2, 200, tid=12)
    assert partners(builder) == {("ABackward0", 100): 0, ("BBackward0", 200): 2}


def test_without_arrows_the_thread_with_most_of_the_numbers_serves(partners):
    builder = TraceBuilder().op("aten::other", 3, 1, sequence=50, tid=12)
    for number in range(4):
        builder.op("aten::a", 10 * number, 5, sequence=number)
        builder.backward("ABackward0", 200 - 10 * number, 9, number)
    assert list(partners(builder).values()) == [0, 10, 20, 30]


def test_recomputation_on_the_backward_thread_is_no_root_and_can_be_a_partner(partners):
    builder = TraceBuilder().op("aten::mm", 0, 5, sequence=1)
    builder.op(
        "autograd::engine::evaluate_function: CheckpointFunctionBackward",
        100,
        80,
        tid=BACKWARD,
        sequence=1,
        fwd_thread=1,
    )
    builder.op("aten::mm", 110, 5, tid=BACKWARD, sequence=1).backward("MmBackward0", 130, 20, 1, fwd_thread=2)
    builder.flow(0, 100).flow(110, 130, tid=BACKWARD)
    assert partners(builder) == {("CheckpointFunctionBackward", 100): 0, ("MmBackward0", 130): 110}


def test_bare_nodes_of_old_traces_are_roots(partners):
    builder = TraceBuilder().event("Operator", "aten::mm", 0, 5, **{"Sequence number": 3, "Fwd thread id": 0})
    builder.event("Operator", "MmBackward", 100, 9, tid=BACKWARD, **{"Sequence number": 3, "Fwd thread id": 1})
    assert partners(builder) == {("MmBackward", 100): 0}


def test_a_span_without_a_number_takes_that_of_its_node(partners):
    builder = TraceBuilder().op("aten::mm", 0, 5, sequence=3)
    builder.op("autograd::engine::evaluate_function: MmBackward0", 100, 9, tid=BACKWARD, sequence=-1)
    builder.op("MmBackward0", 101, 7, tid=BACKWARD, sequence=3, fwd_thread=1)
    assert partners(builder) == {("MmBackward0", 100): 0}


def test_where_all_thread_numbers_are_zero_every_thread_is_asked(partners):
    builder = TraceBuilder().op("aten::a", 0, 5, sequence=3, tid=MAIN).op("aten::b", 50, 5, sequence=2, tid=12)
    builder.backward("ABackward0", 100, 9, 3, fwd_thread=0).backward("BBackward0", 200, 9, 2, fwd_thread=0)
    assert partners(builder) == {("ABackward0", 100): 0, ("BBackward0", 200): 50}


def test_a_backward_pass_on_the_forward_thread_finds_its_partners(partners):
    builder = TraceBuilder().op("aten::mm", 0, 5, sequence=3).backward("MmBackward0", 100, 9, 3, tid=MAIN)
    assert partners(builder) == {("MmBackward0", 100): 0}
