"""Kernels of replayed CUDA graphs at the lines of their capture, worked out by hand.

There is no trace of a capture among the test data: these stand in for one. Their form is that of
`torch/cuda/_graph_annotations.py` and `_annotate_cuda_graph_trace.py` in torch 2.13: each replayed kernel bears the id
of its node as `graph node id`, the executable graph's number in the upper 32 bits; 0 outside of graphs, as in the
shared trace ao-ref_ep_moe_fwd. tests/gpu/test_streams.py records a real one.
"""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Profile
from deepscope.report.line_tree import below
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

TRAIN, MODEL, LIBRARY = "/home/me/train.py", "/home/me/model.py", "/opt/site-packages/lib/layer.py"
GRAPH = 7
PLACES = [
    [0, 12, "capture", -1, False, 10],
    [1, 30, "Net.forward", 0, False, 28],
    [1, 31, "Net.forward", 0, False, 28],
    [2, 5, "layer", -1, True, 0],
]
"""Line 12 of train.py, which calls lines 30 and 31 of model.py; a library's line 5 without a caller."""
CAPTURES = [{"graph": GRAPH, "nodes": [[0, 1], [1, 2], [2, 0], [4, 3]]}]


class _Builder(TraceBuilder):
    """Line 70 of `train.py` replays a graph of five nodes: 100, 200, 300, 400 and 500 ns; the fourth is not told."""

    def __init__(self, captures: Any = None, *, graph: int = GRAPH, within: str = "", **launch: Any) -> None:
        super().__init__()
        self.captures = CAPTURES if captures is None else captures
        self.line(TRAIN, 70, "main", 0, 10_000)
        if within:
            self.module("GraphedNet", within, 5, 9_000)
        self.runtime("cudaGraphLaunch", 100, 50, correlation=900, **launch)
        at = 20_000
        for node in range(5):
            duration = 100 * (node + 1)
            numbers = {"graph id": graph, "graph node id": graph << 32 | node} if graph else {"graph node id": 0}
            self.orphan(f"kernel_{node}", at, duration, correlation=900, **numbers)
            at += duration

    def document(self) -> dict[str, Any]:
        document = super().document()
        own = document["deepscope"]
        files = [{"path": path} for path in (TRAIN, MODEL, LIBRARY)]
        own["scopes"] = [[row[0], 0 if row[1] >= 0 else -1, *row[2:]] for row in own["scopes"]]
        return document | {
            "deepscope": own | {"files": files, "compiled": {"places": PLACES, "captures": self.captures}}
        }


def _self(profile: Profile) -> dict[int, int]:
    return {line.line: line.self_device_ns for line in profile.lines if line.self_device_ns}


def test_replayed_kernels_stand_at_the_lines_that_they_were_captured_at(profile_of, at):
    profile = profile_of(_Builder())
    # The fourth node is not told, and the fifth was captured at a library's line without a caller of the user's.
    assert _self(profile) == {30: 100, 31: 200, 12: 300, 70: 400 + 500}
    assert sum(_self(profile).values()) == profile.totals.device_ns == 1500
    assert profile.no_line.self_device_ns == 0


def test_the_line_of_the_replay_keeps_the_whole_as_its_total(profile_of, at):
    profile = profile_of(_Builder())
    assert at(profile, 70).total_device_ns == 1500
    assert at(profile, 12).total_device_ns == 100 + 200 + 300
    assert at(profile, 30).total_device_ns == 100


def test_a_captured_line_is_exact_and_shares_nothing(profile_of, at):
    profile = profile_of(_Builder())
    for line in (12, 30, 31):
        assert (at(profile, line).exact, at(profile, line).fused, at(profile, line).shared_ns) == (True, False, 0)
    assert at(profile, 30).function == "Net.forward"
    assert at(profile, 30).launches == 1


def test_below_a_captured_line_its_kernels_stand_alone_and_sum_to_it(profile_of, at):
    profile = profile_of(_Builder(within="net"))

    def opened(number: int) -> list[tuple[int, str, str, int]]:
        (row,) = (row for row, one in enumerate(profile.lines) if one.line == number)
        nodes = list(below(profile, row).walk())
        assert nodes[0][1].total_device_ns == at(profile, number).self_device_ns
        return [(depth, one.kind, one.name, one.total_device_ns) for depth, one in nodes if depth]

    assert opened(30) == [(1, "kernel", "kernel_0", 100)]
    assert opened(12) == [(1, "kernel", "kernel_2", 300)]
    # What is not told lies where the replay does.
    assert opened(70)[0] == (1, "module", "net", 900)


@pytest.mark.parametrize(
    ("captures", "graph"),
    [
        ([], GRAPH),
        (CAPTURES, 8),
        (CAPTURES, 0),
        ([{"graph": GRAPH}], GRAPH),
        ([{"graph": -1, "nodes": [[0, 1]]}], GRAPH),
        ([{"graph": 1 << 31, "nodes": [[0, 1]]}], GRAPH),
        ([{"graph": GRAPH, "nodes": [[1 << 32, 1], [-1, 1], ["0", 1], [0], 0, None]}], GRAPH),
        ([{"graph": GRAPH, "nodes": [[0, 99], [1, -1], [2, 1 << 60]]}], GRAPH),
        ("junk", GRAPH),
        ([None, 5, {}], GRAPH),
    ],
)
def test_a_graph_that_is_not_told_stays_at_the_line_of_the_replay(profile_of, captures, graph):
    assert _self(profile_of(_Builder(captures, graph=graph))) == {70: 1500}


def test_one_node_of_two_tales_has_the_first(profile_of):
    captures = [{"graph": GRAPH, "nodes": [[0, 1], [0, 2]]}]
    assert _self(profile_of(_Builder(captures))) == {30: 100, 70: 1400}


def test_two_replays_are_counted_each(tmp_path):
    builder = _Builder()
    builder.runtime("cudaGraphLaunch", 200, 50, correlation=901)
    for node in range(2):
        builder.orphan(
            f"kernel_{node}", 30_000 + 1000 * node, 10, correlation=901, **{"graph node id": GRAPH << 32 | node}
        )
    profile = build_profile(read_trace(builder.write(tmp_path / "built.json")))
    assert _self(profile) == {30: 110, 31: 210, 12: 300, 70: 900}
