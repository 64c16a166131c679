"""On a CUDA device: several streams, and graphs that replay what was captured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import deepscope
from gpu.recorded import record, recorded, total_ns, union_ns

pytestmark = pytest.mark.gpu

SIZE = 1024


def test_two_streams_keep_their_lines_and_busy_time_counts_overlap_once(tmp_path: Path) -> None:
    x = torch.randn(SIZE, SIZE, device="cuda")
    side = torch.cuda.Stream()

    def code() -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(20):
                torch.sin(x)  # @side
        for _ in range(20):
            torch.cos(x)  # @main
        torch.cuda.synchronize()

    found = record(code, tmp_path)
    assert len({span.args["stream"] for span in found.work}) == 2
    assert found.at("side").self_device_ns == total_ns(found.work_under("aten::sin")), found.describe_lines()
    assert found.at("main").self_device_ns == total_ns(found.work_under("aten::cos"))
    assert found.at("side").calls == 20
    totals = found.profile.totals
    assert totals.busy_ns == union_ns(found.work)
    assert totals.busy_ns + totals.idle_ns == totals.wall_ns


def test_a_replayed_graph_belongs_to_the_line_that_replays_it(tmp_path: Path) -> None:
    x = torch.randn(SIZE, SIZE, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.sin(x) @ x
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.sin(x) @ x

    def code() -> None:
        graph.replay()  # @replay
        torch.cuda.synchronize()

    found = record(code, tmp_path)
    assert len(found.work) >= 2
    assert found.at("replay").self_device_ns == total_ns(found.work), found.describe_lines()
    assert found.profile.no_line.self_device_ns == 0


def captured(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)  # @captured_sin
    return y @ x  # @captured_matmul


def test_kernels_of_a_graph_stand_at_the_lines_of_its_capture_where_torch_and_the_driver_tell(tmp_path: Path) -> None:
    annotations = pytest.importorskip(
        "torch.cuda._graph_annotations", reason=f"torch {torch.__version__} has no annotations of graphs"
    )
    if annotations._is_tools_id_unavailable():
        pytest.skip(
            f"torch {torch.__version__} cannot tell the nodes of graphs: cuda.bindings or driver before CUDA 13.1"
        )
    x = torch.randn(SIZE, SIZE, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        captured(x)
    torch.cuda.synchronize()
    recording = deepscope.profile(tmp_path)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured(x)  # @captured_call
    graph.replay()
    torch.cuda.synchronize()
    with recording:
        graph.replay()  # @replay_captured
        torch.cuda.synchronize()
    found = recorded(recording, Path(__file__))
    work = sorted(found.work, key=lambda span: span.start_ns)
    assert all(span.args.get("graph node id") for span in work), "the trace does not tell the nodes"
    sin, *matmul = [span for span in work if span.category == "kernel"]
    assert found.at("captured_sin").self_device_ns == total_ns([sin]), found.describe_lines()
    assert found.at("captured_matmul").self_device_ns == total_ns(matmul), found.describe_lines()
    assert found.at("captured_call").total_device_ns == total_ns([sin, *matmul])
    assert found.at("replay_captured").total_device_ns == total_ns(found.work)
    assert found.at("captured_sin").exact
    assert not annotations._annotations_enabled
    assert not annotations._pending_scopes


def test_idle_time_stands_at_the_line_that_let_the_device_idle(tmp_path: Path) -> None:
    x = torch.randn(SIZE, SIZE, device="cuda")

    def code() -> None:
        torch.sin(x)
        torch.cuda.synchronize()
        sum(range(2_000_000))  # @host_work
        torch.cos(x)

    found = record(code, tmp_path)
    (first,), (second,) = found.work_under("aten::sin"), found.work_under("aten::cos")
    gap_ns = second.start_ns - first.end_ns
    assert gap_ns * 3 // 4 < found.at("host_work").idle_ns <= gap_ns
