"""Late spans become the runs that they tell of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from deepscope.trace.late import LateRuns, late_event, with_late_runs
from deepscope.trace.model import Kind, Trace
from deepscope.trace.read import read_trace


def trace_of(folder: Path, *names: str) -> Trace:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": 100 * number + 50.25, "dur": 3.5}
        for number, name in enumerate(names)
    ]
    path = folder / "raw.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return read_trace(str(path))


def test_a_trace_without_late_spans_is_left_as_it_is(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "aten::add", "@ds:1")
    same, runs = with_late_runs(trace, 5)
    assert same is trace
    assert runs == {}


def test_each_run_gets_a_row_with_the_times_that_the_span_tells(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "aten::add", "@dl:3:20250", "@dl:1,2,4:1000")
    found, runs = with_late_runs(trace, 5)
    assert runs == {1: LateRuns((3,), 130_000, 20_250), 2: LateRuns((1, 2, 4), 249_250, 1_000)}
    events = found.events
    assert events.start_ns.tolist() == [50_250, 130_000, 249_250, 249_250, 249_250]
    assert events.duration_ns.tolist() == [3_500, 20_250, 1_000, 1_000, 1_000]
    assert events.scope.tolist() == [-1, 3, 1, 2, 4]
    assert events.kind.tolist() == [Kind.OPERATOR] + [Kind.LINE_SCOPE] * 4
    assert np.unique(events.thread).tolist() == [0]


def test_a_span_of_scopes_that_do_not_exist_tells_nothing(tmp_path: Path) -> None:
    _, runs = with_late_runs(trace_of(tmp_path, "@dl:7:100", "@dl:x:100"), 5)
    assert runs == {}


def test_the_event_keeps_its_place_and_tells_the_runs_times() -> None:
    text = late_event(
        b'{"ph":"X","name":"@dl:3:20250","pid":1,"tid":"x","ts":150.25,"dur":3}',
        LateRuns((3,), 4_711_130_000_007, 20_250),
        b'{"ph":"X","cat":"python_line","name":"a.py(1): f","pid":',
        b',"args":{"scope":3}}',
    )
    event = json.loads(text)
    assert (event["pid"], event["tid"], event["args"]) == (1, "x", {"scope": 3})
    assert b'"ts":4711130000.007,"dur":20.250' in text
