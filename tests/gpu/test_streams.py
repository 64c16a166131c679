"""On a CUDA device: several streams, and graphs that replay what was captured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gpu.recorded import record, total_ns, union_ns

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
