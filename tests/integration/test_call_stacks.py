"""The `Call stack` of operators in recorded traces: the innermost frame is the line that owns the operator's work."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepscope
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.names import Frame, parse_call_stack
from deepscope.trace.read import read_trace
from line_truth import TARGETS, load_target
from recorded import load

PROGRAMS = [
    "line_dense",
    "recomputed",
    "modules",
    "autograd_functions",
    "suspended",
    "control",
    "expressions",
    "threads",
]
DENSE = TARGETS / "line_dense.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The trace file of a target program."""

    @lru_cache
    def record(name: str) -> Path:
        program = load_target(name)
        with deepscope.profile(tmp_path_factory.mktemp("runs"), root=TARGETS, filename=name) as recording:
            program.main(lambda function: function)
        (path,) = recording.traces
        return path

    return record


def stack_of(trace: Trace, event: int) -> list[Frame]:
    text = trace.events.call_stack[event]
    return parse_call_stack(trace.strings[text]) if text >= 0 else []


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_innermost_frame_of_each_operator_is_the_line_that_owns_its_work(recorded: Any, name: str) -> None:
    trace = read_trace(recorded(name))
    found = attribute(trace)
    operators = np.flatnonzero(trace.events.kind == Kind.OPERATOR).tolist()
    owners = [found.scopes.locations[at] if (at := found.owners.location[event]) >= 0 else None for event in operators]
    innermost = [stack[0] if (stack := stack_of(trace, event)) else None for event in operators]
    assert [frame and (frame.path, frame.line) for frame in innermost] == [
        place and (place.file, place.line) for place in owners
    ]
    assert sum(frame is not None for frame in innermost) > 0.95 * len(operators)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_frames_alone_say_what_the_lines_say(recorded: Any, name: str, tmp_path: Path) -> None:
    """Another tool may have taken the scopes out: the owners read from the stacks are the same."""
    document = load(recorded(name))
    with_scopes = attribute(read_trace(recorded(name)))
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e.get("cat") not in ("python_line", "python_module")
    ]
    stripped = tmp_path / "stripped.json"
    stripped.write_bytes(json.dumps(document).encode())
    without = attribute(read_trace(stripped))

    def owners(found: Any) -> list[Any]:
        operators = np.flatnonzero(found.trace.events.kind == Kind.OPERATOR)
        places = [found.scopes.locations[at] if at >= 0 else None for at in found.owners.location[operators].tolist()]
        return [place and (place.file, place.line, place.exact) for place in places]

    assert without.scopes.source == "call_stack"
    assert owners(without) == owners(with_scopes)


def test_a_backward_operator_leads_to_its_forward_line_and_below_it_to_the_call_of_backward(recorded: Any) -> None:
    trace = read_trace(recorded("line_dense"))
    nodes = [
        event
        for event in np.flatnonzero(trace.events.kind == Kind.OPERATOR).tolist()
        if trace.strings[trace.events.name[event]] == "SoftmaxBackward0"
    ]
    assert len(nodes) >= 24
    for event in nodes:
        lines = [frame.line for frame in stack_of(trace, event)]
        assert lines[0] == line_of("return scores.softmax(-1)")
        assert line_of("loss.backward()") in lines[1:]


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(DENSE.read_text().splitlines(), 1) if text in line)


def test_the_dashboard_has_frames_for_all_calls_of_operators_in_line_dense_code(recorded: Any) -> None:
    """As torch-tb-profiler's `operation/table` and `operation/stack` answer, loaded in this process."""
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    with io.Cache() as cache:
        data = RunProfileData.parse("line_dense.rank0", "1", str(recorded("line_dense")), cache)
    views = RunGenerator("line_dense.rank0", "1", data).generate_run_profile()
    calls = {row["name"]: row["calls"] for row in views.operation_table_by_name["data"]}
    with_frames = {
        name: sum(row["calls"] for row in views.operation_stack_by_name[name]["data"] if row["call_stack"])
        for name in calls
        if name in views.operation_stack_by_name
    }
    assert {"aten::softmax", "aten::mm", "SoftmaxBackward0"} <= with_frames.keys()
    assert sum(with_frames.values()) > 0.95 * sum(calls.values())
