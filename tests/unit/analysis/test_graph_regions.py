"""The kernels of replayed CUDA graphs by the regions that `torch.cuda.graph_annotations` marked, worked out by hand.

torch merges the annotations into the trace itself (`torch.cuda._annotate_cuda_graph_trace`), here into a built one,
since no trace of that kind is among the test data.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Module, Profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

GRAPH = 7
REGIONS: dict[int, Any] = {
    0: {"module_fqn": "layers.0"},
    1: {"name": "layers.0.attention.wq"},
    2: {"str": "layers.0.attention.wq", "autograd_phase": "backward"},
    3: "sampler",
}
"""By node, of five: the last is not annotated."""


class _Replays(TraceBuilder):
    """A frame of `GraphRunner` replays a graph of five nodes twice: 100, 200, 300, 400 and 500 ns."""

    def __init__(self, *, within: str = "nn.Module: GraphRunner_0") -> None:
        super().__init__()
        at = 20_000
        for replay in range(2):
            start = 10_000 * replay
            self.step(replay, start, 9_000)
            if within:
                self.frame(within, start + 50, 5_000)
            self.runtime("cudaGraphLaunch", start + 100, 50, correlation=900 + replay)
            for node in range(5):
                duration = 100 * (node + 1)
                ids = {"graph id": GRAPH, "graph node id": GRAPH << 32 | node}
                self.orphan(f"kernel_{node}", at, duration, correlation=900 + replay, **ids)
                at += duration


def _annotated(builder: TraceBuilder, folder: Path, regions: dict[int, Any] | None = None) -> Path:
    """The trace as torch annotates it, each node by a list."""
    annotate = importlib.import_module("torch.cuda._annotate_cuda_graph_trace").annotate_trace
    document = builder.document()
    found = annotate(document, {GRAPH << 32 | node: [one] for node, one in (regions or REGIONS).items()})
    assert found == 2 * len(regions or REGIONS)
    path = folder / "annotated.pt.trace.json"
    path.write_bytes(msgspec.json.encode(document))
    return path


def _modules(profile: Profile) -> dict[str, Module]:
    return {one.path: one for one in profile.modules}


def test_kernels_stand_in_the_regions_that_annotations_name(tmp_path):
    profile = build_profile(read_trace(_annotated(_Replays(), tmp_path)))
    of = _modules(profile)
    assert {path: one.self_device_ns for path, one in of.items()} == {
        "GraphRunner_0": 2 * 500,
        "layers.0": 2 * 100,
        "layers.0.attention.wq": 2 * (200 + 300),
        "sampler": 2 * 400,
    }
    assert sum(one.self_device_ns for one in profile.modules) == profile.totals.device_ns == 3000
    assert {one.class_name for path, one in of.items() if path != "GraphRunner_0"} == {"CUDA graph"}


def test_regions_hold_those_within_them_by_name_and_lie_in_what_replays(tmp_path):
    of = _modules(build_profile(read_trace(_annotated(_Replays(), tmp_path))))
    assert of["GraphRunner_0"].total_device_ns == 3000
    assert of["layers.0"].total_device_ns == 2 * (100 + 200 + 300)
    assert (of["layers.0"].parent, of["sampler"].parent) == ("GraphRunner_0", "GraphRunner_0")
    assert of["layers.0.attention.wq"].parent == "layers.0"


def test_regions_are_called_once_a_replay_and_take_no_time_of_the_cpu(tmp_path):
    of = _modules(build_profile(read_trace(_annotated(_Replays(), tmp_path))))
    assert {path: (one.calls, one.launches, one.self_cpu_ns) for path, one in of.items() if one.calls} == {
        "GraphRunner_0": (2, 2, 10_000),
        "layers.0": (2, 2, 0),
        "layers.0.attention.wq": (2, 4, 0),
        "sampler": (2, 2, 0),
    }


def test_what_is_annotated_as_backward_work_is(tmp_path):
    of = _modules(build_profile(read_trace(_annotated(_Replays(), tmp_path))))
    assert of["layers.0.attention.wq"].backward_device_ns == 2 * 300
    assert of["layers.0"].total_backward_device_ns == 2 * 300
    assert of["sampler"].backward_device_ns == 0


def test_a_region_can_be_chosen(tmp_path):
    trace = read_trace(_annotated(_Replays(), tmp_path))
    assert build_profile(trace, module="layers.0").totals.device_ns == 2 * (100 + 200 + 300)
    assert build_profile(trace, module="CUDA graph").totals.device_ns == 2 * (100 + 200 + 300 + 400)
    assert build_profile(trace, module="GraphRunner*").totals.device_ns == 3000


def test_without_modules_regions_stand_alone(tmp_path):
    profile = build_profile(read_trace(_annotated(_Replays(within=""), tmp_path)))
    of = _modules(profile)
    assert of["layers.0"].parent == ""
    assert sum(one.self_device_ns for one in profile.modules) == 3000 - 2 * 500
    assert (profile.resolved.module_ns, profile.resolved.none_ns) == (2000, 1000)


def test_a_region_of_a_recorded_module_is_that_module(tmp_path):
    builder = _Replays(within="")
    builder.module("Sampler", "sampler", 15_000, 200)
    of = _modules(build_profile(read_trace(_annotated(builder, tmp_path))))
    assert (of["sampler"].class_name, of["sampler"].self_device_ns, of["sampler"].self_cpu_ns) == ("Sampler", 800, 200)


def test_names_of_other_work_are_no_regions(tmp_path):
    builder = _Replays()
    for node in (0, -1):
        named = {"graph node id": node, "module_fqn": "none", "str": "none"}
        builder.orphan("kernel_x", 50_000, 10, correlation=900, **named)
    builder.op("aten::mm", 15_000, 10, module_fqn="none", annotation="none")
    profile = build_profile(read_trace(builder.write(tmp_path / "plain.json")))
    assert set(_modules(profile)) == {"GraphRunner_0"}


@pytest.mark.parametrize("name", ["", 5, None, ["a"], {"b": 1}, "x" * 100_000, "a..b.", ".", "\x1b[31m"])
def test_whatever_an_annotation_holds_the_work_is_counted_once(tmp_path, name):
    builder = _Replays()
    for event in builder.document()["traceEvents"]:
        if event.get("args", {}).get("graph node id"):
            event["args"]["name"] = name
    profile = build_profile(read_trace(builder.write(tmp_path / "odd.json")))
    assert sum(one.self_device_ns for one in profile.modules) == profile.totals.device_ns == 3000
