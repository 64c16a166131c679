"""Runs of library lines own nothing and change no number; they stand between what they call and what called them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import attribute, call_stacks
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from random_traces import random_trace
from trace_builder import BACKWARD, TraceBuilder

FILE, LIBRARY = "/home/me/train.py", "/env/site-packages/lib/blocks.py"
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def without_library_lines(document: dict[str, Any]) -> dict[str, Any]:
    """The same trace as if no library line had been recorded."""
    scopes = document["deepscope"]["scopes"]

    def stays(event: dict[str, Any]) -> bool:
        return event.get("cat") != "python_line" or scopes[event["args"]["scope"]][7:] != [True]

    return {**document, "traceEvents": [event for event in document["traceEvents"] if stays(event)]}


def read_document(document: dict[str, Any], path: Path) -> Trace:
    path.write_text(json.dumps(document))
    return read_trace(path)


@pytest.mark.parametrize("step", [None, 2])
@quick
@given(st.integers(0, 100_000))
def test_no_number_of_anything_changes(tmp_path, step, seed):
    document = random_trace(seed, libraries=True).document()
    stripped = without_library_lines(document)
    assert len(stripped["traceEvents"]) < len(document["traceEvents"])
    with_lines, without = (
        msgspec.to_builtins(build_profile(read_document(one, tmp_path / "t.pt.trace.json"), step=step))
        for one in (document, stripped)
    )
    for profile in (with_lines, without):  # what stands below the lines is what library lines are for
        for table in ("parts", "places", "library_lines"):
            del profile[table]
    assert {key for key in with_lines if with_lines[key] != without[key]} == set()


@quick
@given(st.integers(0, 100_000))
def test_every_way_up_passes_the_events_that_it_passes_without_them(tmp_path, seed):
    document = random_trace(seed, libraries=True).document()
    trace = read_document(document, tmp_path / "t.pt.trace.json")
    bare = read_document(without_library_lines(document), tmp_path / "bare.pt.trace.json")
    others = (~trace.library_lines).nonzero()[0].tolist()
    number = {event: index for index, event in enumerate(others)}
    of, of_bare = attribute(trace).calls, attribute(bare).calls

    def way(up: Any, event: int) -> list[int]:
        found = []
        while event >= 0:
            found.append(event)
            event = int(up[event])
        return found

    for event in others:
        for up, up_bare in ((of.parent, of_bare.parent), (of.up, of_bare.up)):
            passed = [number[one] for one in way(up, event) if one in number]
            assert passed == way(up_bare, number[event])


def library_lines_above(trace: Trace, event: int) -> list[int]:
    """The library's lines on the way from an event to the user's line, innermost first."""
    up, found = attribute(trace).calls.up, []
    while event >= 0 and not trace.user_lines[event]:
        if trace.library_lines[event]:
            found.append(trace.scopes[trace.events.scope[event]].line)
        event = int(up[event])
    return found


def event_of(trace: Trace, name: str) -> int:
    (found,) = (index for index, string in enumerate(trace.events.name) if trace.strings[string] == name)
    return found


def nested() -> TraceBuilder:
    builder = TraceBuilder().line(FILE, 3, "main", 0, 1_000)
    builder.line(LIBRARY, 10, "Block.forward", 100, 600, library=True)
    builder.module("Linear", "fc", 150, 400)
    return builder.line(LIBRARY, 20, "project", 200, 300, library=True).op("aten::mm", 250, 100, sequence=7)


def test_work_stands_below_the_library_lines_that_were_open_and_belongs_to_the_users_line(read, profile_of, at):
    trace = read(nested())
    assert library_lines_above(trace, event_of(trace, "aten::mm")) == [20, 10]
    line = at(profile_of(nested()), 3)
    assert (line.self_device_ns, line.calls) == (100, 1)
    assert [one.line for one in profile_of(nested()).lines] == [3]


def test_backward_work_stands_below_the_library_line_of_its_forward(read):
    builder = nested().flow(250, 2_000).backward("MmBackward0", 2_000, 500, 7)
    trace = read(builder.op("aten::mm_back", 2_100, 200, tid=BACKWARD))
    assert library_lines_above(trace, event_of(trace, "aten::mm_back")) == [20, 10]


def test_backward_work_without_a_forward_stands_below_the_library_line_that_called_backward(read, profile_of, at):
    def build() -> TraceBuilder:
        builder = TraceBuilder().line(FILE, 3, "main", 0, 5_000)
        builder.line(LIBRARY, 30, "Accelerator.backward", 100, 4_000, library=True).op("aten::mm", 1, 9, sequence=1)
        builder.op("autograd::engine::evaluate_function: AccumulateGrad", 1_000, 500, tid=BACKWARD)
        return builder.op("aten::add_", 1_100, 200, tid=BACKWARD)

    trace = read(build())
    assert library_lines_above(trace, event_of(trace, "aten::add_")) == [30]
    assert at(profile_of(build()), 3).self_device_ns == 500 + 9


def test_an_annotation_that_begins_on_a_librarys_line_does_not_keep_it_open(read):
    builder = TraceBuilder().line(FILE, 3, "main", 0, 1_000)
    builder.line(LIBRARY, 5, "step", 50, 900, library=True)
    builder.line(LIBRARY, 10, "wrapper", 100, 100, library=True)  # with record_function(…):
    builder.annotation("Optimizer.step#Mine.step", 150, 500).op("aten::in_with", 160, 10)
    builder.line(LIBRARY, 11, "wrapper", 200, 400, library=True).op("aten::mul_", 250, 100)
    builder.line(LIBRARY, 10, "wrapper", 600, 100, library=True).op("aten::after", 660, 10)  # its exit
    trace = read(builder)
    assert library_lines_above(trace, event_of(trace, "aten::mul_")) == [11, 5]
    assert library_lines_above(trace, event_of(trace, "aten::after")) == [10, 5]
    parent, annotation = attribute(trace).calls.parent, event_of(trace, "Optimizer.step#Mine.step")
    at, seen = event_of(trace, "aten::mul_"), []
    while at >= 0:
        seen.append(at)
        at = int(parent[at])
    assert annotation in seen


def test_a_trace_whose_only_lines_are_a_librarys_has_no_line_scopes(read, profile_of):
    builder = TraceBuilder().line(LIBRARY, 10, "forward", 100, 600, library=True)
    builder.frame("/home/me/train.py(1): main", 50, 900).op("aten::mm", 200, 100)
    assert not read(builder).has_line_scopes
    profile = profile_of(builder)
    assert profile.trace.line_source == "frames"
    assert [(line.line, line.self_device_ns) for line in profile.lines] == [(1, 100)]


def test_the_training_thread_is_not_found_by_library_lines(read):
    builder = TraceBuilder().line(FILE, 3, "main", 0, 1_000).op("aten::mm", 100, 100)
    for start in range(0, 1_000, 100):
        builder.line(LIBRARY, 10, "forward", start, 100, tid="other", library=True)
    of = attribute(read(builder))
    assert of.trace.threads[of.training.thread].tid != "other"


def test_the_stacks_of_operators_hold_the_users_frames_alone(read):
    found = call_stacks(attribute(read(nested())))
    assert [found.texts(8)[one] for one in found.of_event if one >= 0] == [f"{FILE}(3): main"]


def test_what_recording_a_librarys_lines_cost_comes_off_the_line_that_called_it(tmp_path: Path) -> None:
    builder = TraceBuilder().line(FILE, 3, "main", 0, 10_000)
    builder.line(LIBRARY, 10, "forward", 1_000, 1_000, library=True).op("Function", 3_000, 2_000)
    builder.line(LIBRARY, 20, "forward", 3_500, 1_000, library=True).op("aten::mm", 3_600, 100)
    document = builder.document()
    document["deepscope"]["lines"] = {"cost_ns": 300}
    profile = build_profile(read_document(document, tmp_path / "t.pt.trace.json"))
    (line,) = profile.lines
    assert line.self_cpu_ns == 10_000 - 3 * 300
    assert line.python_ns == 10_000 - 2_000 - 2 * 300, "the entry in the operator is no part of it"


def test_a_malformed_flag_is_not_believed(read, tmp_path: Path) -> None:
    document = nested().document()
    for row in document["deepscope"]["scopes"]:
        row[7:] = ["x"]
    trace = read_document(document, tmp_path / "t.pt.trace.json")
    assert not trace.library_lines.any()
    assert trace.user_lines.sum() == (trace.events.kind == Kind.LINE_SCOPE).sum() == 3


def test_a_module_is_no_library_line_whatever_its_row_says(read, tmp_path: Path) -> None:
    document = nested().document()
    document["deepscope"]["scopes"] = [[*row[:7], True] for row in document["deepscope"]["scopes"]]
    trace = read_document(document, tmp_path / "t.pt.trace.json")
    assert trace.library_lines.sum() == 3
