"""Late spans become the runs that they tell of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from deepscope.capture.saving.event_text import scope_event
from deepscope.capture.saving.marks import LateRuns, with_late_runs
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace


def trace_of(folder: Path, *names: str, threads: list[int] | None = None) -> Trace:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": 100 * number + 50.25, "dur": 3.5}
        for number, (name, thread) in enumerate(zip(names, threads or [2] * len(names), strict=True))
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
    trace = trace_of(tmp_path, "aten::add", "@dt:", "@dl:3:20250", "@dt:", "@dt:", "@dl:1,2,4:1000")
    found, runs = with_late_runs(trace, 5)
    assert runs == {2: LateRuns((3,), 130_000, 20_250), 5: LateRuns((1, 2, 4), 449_250, 1_000)}
    events = found.events
    assert events.start_ns.tolist() == [50_250, 150_250, 130_000, 350_250, 450_250, 449_250, 449_250, 449_250]
    assert events.duration_ns.tolist() == [3_500, 3_500, 20_250, 3_500, 3_500, 1_000, 1_000, 1_000]
    assert events.scope.tolist() == [-1, -1, 3, -1, -1, 1, 2, 4]
    mark, line = Kind.ANNOTATION, Kind.LINE_SCOPE
    assert events.kind.tolist() == [Kind.OPERATOR, mark, line, mark, mark, line, line, line]
    assert np.unique(events.thread).tolist() == [0]


def test_a_span_of_scopes_that_do_not_exist_tells_nothing(tmp_path: Path) -> None:
    found, runs = with_late_runs(trace_of(tmp_path, "@dt:", "@dl:7:100", "@dl:x:100"), 5)
    assert runs == {}
    assert not (found.events.kind == Kind.OPERATOR).any()


def test_the_moment_is_the_last_on_the_same_thread(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "@dl:1:10", "@dt:", "@dt:", "@dl:2:10", threads=[2, 2, 3, 2])
    _, runs = with_late_runs(trace, 5)
    assert runs == {3: LateRuns((2,), 150_240, 10)}


def test_the_event_keeps_its_place_and_tells_the_runs_times() -> None:
    text = scope_event(
        b'{"ph":"X","name":"@dl:3:20250","pid":1,"tid":"x","ts":150.25,"dur":3}',
        b'{"ph":"X","cat":"python_line","name":"a.py(1): f","pid":',
        b',"args":{"scope":3}}',
        times_ns=(4_711_130_000_007, 20_250),
    )
    event = json.loads(text)
    assert (event["pid"], event["tid"], event["args"]) == (1, "x", {"scope": 3})
    assert b'"ts":4711130000.007,"dur":20.250' in text
