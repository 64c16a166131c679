"""Launches, worked out by hand."""

import numpy as np
import pytest

from deepscope.trace.joins.correlation import launches
from deepscope.trace.kinds import Kind
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


@pytest.fixture
def launched(tmp_path):
    """Device event → what launched it, by name and start."""

    def run(builder):
        trace = read_trace(builder.write(tmp_path / "t.json"))
        call = launches(trace).tolist()
        rows = [(trace.strings[n], int(s)) for n, s in zip(trace.events.name, trace.events.start_ns, strict=True)]
        return {rows[i]: rows[c] if c >= 0 else None for i, c in enumerate(call) if trace.events.kind[i] >= 6}

    return run


def test_work_belongs_to_the_call_with_its_correlation(launched):
    builder = TraceBuilder().kernel("a", 5, 100, 10).kernel("b", 7, 50, 10).memcpy("DtoH", 8, 9, 300, 5)
    assert launched(builder) == {
        ("a", 100): ("cudaLaunchKernel", 5),
        ("b", 50): ("cudaLaunchKernel", 7),
        ("Memcpy DtoH (Device -> Pageable)", 300): ("cudaMemcpyAsync", 9),
    }


def test_all_kernels_of_a_replayed_graph_belong_to_its_launch(launched):
    builder = TraceBuilder().runtime("cudaGraphLaunch", 3, 2, correlation=70)
    for start in (10, 20, 30):
        builder.orphan("k", start, 5, correlation=70)
    assert set(launched(builder).values()) == {("cudaGraphLaunch", 3)}


def test_of_calls_with_one_correlation_the_one_that_launches_counts_then_the_latest_before(launched):
    builder = (
        TraceBuilder()
        .runtime("cudaPointerGetAttributes", 4, 1, correlation=1)
        .runtime("cudaLaunchKernel", 1, 1, correlation=1)
        .runtime("cudaLaunchKernel", 3, 1, correlation=1)
        .runtime("cudaLaunchKernel", 90, 1, correlation=1)
        .orphan("k", 50, 5, correlation=1)
        .orphan("early", 0, 1, correlation=1)
    )
    assert launched(builder) == {("k", 50): ("cudaLaunchKernel", 3), ("early", 0): ("cudaLaunchKernel", 1)}


def test_without_a_call_the_operators_id_serves_where_ids_are_the_operators(launched):
    builder = TraceBuilder().op("aten::mm", 5, 10).orphan("k", 50, 5, correlation=900, **{"External id": 1})
    assert launched(builder) == {("k", 50): ("aten::mm", 5)}


def test_in_old_traces_the_id_repeats_the_correlation_and_says_nothing(launched):
    builder = TraceBuilder().op("aten::mm", 5, 10).orphan("k", 50, 5, correlation=1, **{"External id": 1})
    assert launched(builder) == {("k", 50): None}


def test_work_without_any_number_has_no_launch(launched):
    builder = TraceBuilder().op("aten::mm", 5, 10).event("kernel", "k", 50, 5, pid=0, tid=7)
    builder.event("gpu_user_annotation", "span", 40, 50, pid=0, tid=7, **{"External id": 1})
    assert launched(builder) == {("k", 50): None, ("span", 40): None}


def test_ascends_queue_leads_to_the_operators_thread(launched):
    builder = (
        TraceBuilder()
        .event("cpu_op", "aten::mm", 0, 30, pid=1, tid=11)
        .event("enqueue", "Enqueue", 5, 2, pid=1, tid=11, correlation_id=4)
        .event("dequeue", "Dequeue@aclnnMm", 20, 30, pid=1, tid=12, correlation_id=4)
        .event("", "AscendCL@aclnnMm", 25, 10, pid=9, tid=12, connection_id=9)
        .event("", "MatMul", 40, 8, pid=800, tid=3, connection_id=9)
        .event("", "Cast", 50, 8, pid=800, tid=3, connection_id=777)
        .name_process(9, "CANN")
        .name_process(800, "Ascend Hardware")
    )
    common = {"cat": "HostToDevice", "name": "HostToDevice5", "id": "5"}
    builder.events.append({"ph": "s", "pid": 9, "tid": 12, "ts": 0.026, **common})
    builder.events.append({"ph": "f", "pid": 800, "tid": 3, "ts": 0.05, **common})
    assert launched(builder) == {("MatMul", 40): ("Enqueue", 5), ("Cast", 50): ("Enqueue", 5)}


@pytest.mark.parametrize(
    ("devices", "shift"), [(("[0] 0", "[1] 0"), shift) for shift in (-500, 0, 3, 500)] + [((0, 1), -500), ((0, 1), 500)]
)
def test_two_processes_in_one_file_do_not_share_correlations(tmp_path, shift, devices):
    """Merging scripts rename the processes; the numbers stay those of each rank."""
    builder = TraceBuilder()
    for rank in (0, 1):
        for number in range(1, 9):
            at = 1_000 * number + rank * shift
            builder.event("cuda_runtime", "cudaLaunchKernel", at, 10, pid=f"[{rank}] 4711", tid=1, correlation=number)
            builder.event("kernel", f"k{rank}", at + 50 + rank, 30, pid=devices[rank], tid=7, correlation=number)
    trace = read_trace(builder.write(tmp_path / "merged.json"))
    found = launches(trace)
    for kernel in np.flatnonzero(trace.events.kind == Kind.KERNEL):
        call = found[kernel]
        rank = trace.strings[trace.events.name[kernel]][1:]
        assert trace.threads[trace.events.thread[call]].pid == f"[{rank}] 4711"
        assert trace.events.correlation[call] == trace.events.correlation[kernel]
