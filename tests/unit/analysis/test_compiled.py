"""Compiled kernels at the lines that they were fused from, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import attribute
from deepscope.records import Profile
from trace_builder import TraceBuilder

TRAIN, MODEL, LIBRARY = "/home/me/train.py", "/home/me/model.py", "/opt/site-packages/lib/layer.py"
CALL = "## Call CompiledFxGraph fabc ##"
FILES = [{"path": path} for path in (MODEL, LIBRARY)]
PLACES = [
    [0, 30, "Net.forward", -1, False, 28],
    [0, 31, "Net.forward", -1, False, 28],
    [0, 40, "Net.forward", -1, False, 28],
    [0, 9, "helper", 0, False, 8],
    [1, 5, "layer", 2, True, 0],
    [1, 6, "alone", -1, True, 0],
]
"""30; 31; 40; 9, called from 30; a library's line 5, called from 40; a library's line 6 without a caller."""


class _Builder(TraceBuilder):
    """A trace in which line 70 of `train.py` calls a compiled graph from 0 to 10,000."""

    def __init__(self, *kernels: Any, places: Any = None, key: str = "fabc", lines: bool = True) -> None:
        super().__init__()
        self.compiled = {"graphs": [{"key": key, "kernels": list(kernels)}], "places": places or PLACES}
        if lines:
            self.line(TRAIN, 70, "main", 0, 10_000)
        self.op("Torch-Compiled Region: 0/0", 10, 9_000).op(CALL, 20, 8_000)

    def document(self) -> dict[str, Any]:
        document = super().document()
        own = document.setdefault("deepscope", {"format": 2})
        own["files"] = FILES + own.get("files", [])
        own["scopes"] = [[row[0], row[1] + len(FILES), *row[2:]] for row in own.get("scopes", [])]
        return document | {"deepscope": own | {"compiled": self.compiled}}


def _self(profile: Profile) -> dict[int, int]:
    return {line.line: line.self_device_ns for line in profile.lines if line.self_device_ns}


def _shared(profile: Profile) -> dict[int, int]:
    return {line.line: line.shared_ns for line in profile.lines if line.shared_ns}


def test_a_fused_kernel_is_divided_by_the_nodes_of_each_line_and_the_rest_goes_to_the_largest(profile_of, at):
    built = _Builder(["triton_0", [[0, 1], [1, 5], [2, 1]]]).kernel("triton_0", 100, 20_000, 1000)
    profile = profile_of(built)
    assert _self(profile) == {30: 142, 31: 716, 40: 142}  # sevenths: 142.86, 714.29, 142.86
    assert _shared(profile) == _self(profile)
    assert at(profile, 70).total_device_ns == 1000
    assert at(profile, 70).self_device_ns == at(profile, 70).shared_ns == 0
    assert [(one.line, one.shared_ns) for one in at(profile, 30).shared_with] == [(31, 716), (40, 142)]
    assert not at(profile, 30).exact
    assert at(profile, 30).fused
    assert at(profile, 31).function == "Net.forward"
    assert (profile.totals.launches, at(profile, 31).launches, at(profile, 30).launches) == (1, 1, 0)
    assert [(one.calls, one.device_ns, one.max_ns) for one in profile.kernels] == [(1, 1000, 1000)]
    assert (profile.resolved.line_ns, profile.resolved.ratio) == (1000, 1.0)
    assert profile.totals.compiled_at_call_ns == 0


def test_a_kernel_of_one_line_is_that_lines_alone(profile_of, at):
    profile = profile_of(_Builder(["triton_0", [[1, 4]]]).kernel("triton_0", 100, 20_000, 999))
    assert _self(profile) == {31: 999}
    assert at(profile, 31).exact
    assert not at(profile, 31).shared_ns
    assert at(profile, 31).shared_with == []


def test_a_name_that_is_called_twice_has_the_lines_of_each_call_in_their_order(profile_of):
    built = _Builder(["triton_0", [[0, 1]]], ["other", [[2, 1]]], ["triton_0", [[1, 1]]])
    built.kernel("triton_0", 100, 20_000, 5).kernel("other", 200, 20_100, 7).kernel("triton_0", 300, 20_200, 11)
    assert _self(profile_of(built)) == {30: 5, 40: 7, 31: 11}


def test_calls_that_cannot_be_told_apart_share_the_lines_of_all(profile_of):
    built = _Builder(["triton_0", [[0, 1]]], ["triton_0", [[1, 3]]]).kernel("triton_0", 100, 20_000, 8)
    assert _self(profile_of(built)) == {30: 2, 31: 6}


def test_an_extern_kernel_is_known_by_its_operator(profile_of):
    built = _Builder(["extern_kernels.addmm", [[0, 1]]], ["torch.ops.mine.sparse.default", [[1, 1]]])
    built.op("aten::addmm", 100, 50).kernel("gemm", 110, 20_000, 70)
    built.op("mine::sparse", 200, 50).kernel("fill", 210, 20_100, 3).kernel("gather", 230, 20_200, 4)
    built.op("aten::empty", 300, 50).kernel("set", 310, 20_300, 1)
    assert _self(profile_of(built)) == {30: 70, 31: 7, 70: 1}


def test_the_users_line_around_a_librarys_has_its_work_and_without_one_the_call_has_it(profile_of, at):
    built = _Builder(["triton_0", [[4, 1], [5, 3]]]).kernel("triton_0", 100, 20_000, 8)
    profile = profile_of(built)
    assert _self(profile) == {40: 2, 70: 6}
    assert _shared(profile) == {40: 2, 70: 6}
    assert at(profile, 70).total_device_ns == 8


def test_a_path_goes_on_from_the_call_through_the_lines_of_the_source(profile_of, at):
    profile = profile_of(_Builder(["triton_0", [[3, 1], [1, 1]]]).kernel("triton_0", 100, 20_000, 10))
    totals = {number: at(profile, number).total_device_ns for number in (70, 30, 31, 9)}
    assert totals == {70: 10, 30: 5, 31: 5, 9: 5}
    assert _self(profile) == {9: 5, 31: 5}
    lines = [profile.lines[node.line].line for node in profile.call_tree]
    callers = [lines[node.parent] if node.parent >= 0 else None for node in profile.call_tree]
    assert set(zip(callers, lines, strict=True)) == {(None, 70), (70, 30), (30, 9), (70, 31)}


def test_backward_work_stands_at_the_forward_lines_and_is_backward(profile_of, at):
    built = _Builder(["triton_0", [[0, 1]]])
    built.compiled["graphs"].append({"key": "fback", "kernels": [["triton_b", [[0, 1], [1, 1]]]]})
    built.op("CompiledFunction", 15, 8_500, sequence=5).line(TRAIN, 71, "main", 10_000, 10_000)
    built.backward("CompiledFunctionBackward", 11_000, 5_000, sequence=5).flow(15, 11_001)
    built.op("## Call CompiledFxGraph fback ##", 11_100, 4_000, tid=102)
    built.kernel("triton_0", 100, 20_000, 3).kernel("triton_b", 11_200, 30_000, 10, tid=102)
    profile = profile_of(built)
    assert _self(profile) == {30: 8, 31: 5}
    assert [at(profile, line).backward_device_ns for line in (30, 31)] == [5, 5]
    assert (at(profile, 71).total_device_ns, at(profile, 70).total_device_ns) == (10, 13)


def test_a_graph_that_tells_no_lines_leaves_its_kernels_at_the_call(profile_of, at):
    profile = profile_of(_Builder(["triton_0", [[0, 1]]], key="another").kernel("triton_0", 100, 20_000, 10))
    assert _self(profile) == {70: 10}
    assert profile.totals.compiled_at_call_ns == 10
    assert at(profile, 70).in_compiled_region


def test_without_line_scopes_the_lines_are_known_nevertheless(profile_of, at):
    built = _Builder(["triton_0", [[0, 1], [1, 1]]], lines=False).kernel("triton_0", 100, 20_000, 10)
    profile = profile_of(built)
    assert _self(profile) == {30: 5, 31: 5}
    assert profile.resolved.line_ns == 10


def test_a_collective_is_not_divided(profile_of):
    built = _Builder(["torch.ops._c10d_functional.all_reduce_.default", [[0, 1], [1, 2]]])
    built.op("_c10d_functional::all_reduce_", 100, 50).kernel("ncclDevKernel_AllReduce_Sum_f32", 110, 20_000, 9)
    profile = profile_of(built)
    assert {line.line: line.collective_exposed_ns for line in profile.lines if line.collective_ns} == {31: 9}


@pytest.mark.parametrize(
    "places",
    [[], [None, None], [[0, 30, "f", 0], [0, 31, "f", 1]], [[0, 30, "f", 1], [0, 31, "f", 0]], [[99, 30, "f", -1]]],
    ids=["none", "bad", "their own callers", "each other's", "no file"],
)
def test_places_that_make_no_sense_lose_nothing(places, profile_of):
    built = _Builder(["triton_0", [[0, 1], [1, 1], [7, 1]]], places=places).kernel("triton_0", 100, 20_000, 11)
    profile = profile_of(built)
    assert sum(line.self_device_ns for line in profile.lines) == profile.totals.device_ns == 11


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_of_each_piece_sum_to_it(seed, read):
    chance = np.random.default_rng(seed)
    kernels = []
    for i in range(8):
        places = chance.choice(len(PLACES), chance.integers(0, len(PLACES) + 1), replace=False)
        kernels.append([f"k{i}", [[int(place), int(chance.integers(1, 10**6))] for place in places]])
    built = _Builder(*kernels)
    for i in range(40):
        name = f"k{chance.integers(10)}"
        built.kernel(name, 100 + 10 * i, 20_000 + 10_000 * i, int(chance.integers(0, 5_000)))
    trace = read(built)
    work = attribute(trace).work
    events = trace.events
    whole = np.zeros(len(events), np.int64)
    np.add.at(whole, work.event, work.duration_ns)
    pieces = work.event[work.counts]
    assert len(pieces) == len(set(pieces.tolist())) == 40
    assert (whole[pieces] == events.duration_ns[pieces]).all()
    assert (work.duration_ns >= 0).all()
    largest = np.zeros(len(events), np.int64)
    np.maximum.at(largest, work.event, work.duration_ns)
    assert (work.duration_ns[work.counts] == largest[pieces]).all()
    profile = build_profile(trace)
    assert sum(one.calls for one in profile.kernels) == profile.totals.launches == 40
    assert sum(one.self_device_ns for one in profile.lines) + profile.no_line.self_device_ns == profile.totals.device_ns
