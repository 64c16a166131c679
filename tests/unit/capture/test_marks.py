"""What the recorder's spans in an export mark: late lines become the runs that they tell of, clocks are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.capture.saving.marks import (
    ClockReadings,
    LateRuns,
    compared_clock,
    on_host_clock,
    with_late_runs,
)
from deepscope.trace.format.header import Clock, Header, read_header
from deepscope.trace.format.span_names import clock_name, is_own
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


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


BASE = 1_790_857_026_000_000_000


def export(folder: Path, starts: list[int], base_ns: int | None = BASE) -> Trace:
    builder = TraceBuilder(**({} if base_ns is None else {"baseTimeNanoseconds": base_ns}))
    for number, start in enumerate(starts):
        builder.op(clock_name(number), start, 100)
    return read_trace(builder.op("aten::mm", 9_000_000, 5).write(folder / "trace.json"))


def test_the_closest_pair_of_readings_counts(tmp_path: Path):
    readings: ClockReadings = [
        (BASE + 5_000, BASE + 9_000),
        (BASE + 15_000, BASE + 15_401),
        (BASE + 25_000, BASE + 99_000),
    ]
    clock = compared_clock(readings, export(tmp_path, [5_301, 15_301, 25_301]))
    assert clock == Clock(offset_ns=-101, error_ns=201, unix_ns=BASE + 15_000)


def test_whole_microseconds_may_be_rounded(tmp_path: Path):
    clock = compared_clock([(BASE + 15_000, BASE + 15_400)], export(tmp_path, [15_000]))
    assert clock == Clock(offset_ns=200, error_ns=1_200, unix_ns=BASE + 15_000)


def test_a_recording_without_marks_has_no_comparison(tmp_path: Path):
    assert compared_clock([(1, 2)], export(tmp_path, [])) is None
    assert compared_clock([], export(tmp_path, [15_000])) is None


def test_a_trace_on_the_hosts_clock_has_nothing_left_to_add(tmp_path: Path):
    raw = export(tmp_path, [15_301])
    clock = compared_clock([(BASE + 20_000, BASE + 20_400)], raw)
    assert clock is not None
    moved, left = on_host_clock(raw, clock)
    assert moved.base_ns == moved.metadata["baseTimeNanoseconds"] == BASE + clock.offset_ns
    assert (left.offset_ns, left.error_ns, left.unix_ns) == (0, clock.error_ns, clock.unix_ns)
    with_header = (replace(moved, header=Header(clock=left)), replace(raw, header=Header(clock=clock)))
    assert with_header[0].unix_base_ns == with_header[1].unix_base_ns


def test_a_trace_without_a_base_gets_one(tmp_path: Path):
    raw = export(tmp_path, [15_301], base_ns=None)
    clock = compared_clock([(BASE + 15_000, BASE + 15_602)], raw)
    assert clock is not None
    assert on_host_clock(raw, clock)[0].metadata["baseTimeNanoseconds"] == BASE


JUNK = st.recursive(
    st.none() | st.integers() | st.text() | st.floats(),
    lambda one: st.lists(one) | st.dictionaries(st.sampled_from(["offset_ns", "error_ns", "unix_ns"]), one),
)


@given(JUNK)
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_junk_in_a_header_gives_a_clock_that_can_be_added(junk: object):
    trace_clock = read_header({"format": 2, "clock": junk}).clock
    if trace_clock is not None:
        assert abs(trace_clock.offset_ns) < 2**62
        assert trace_clock.error_ns >= 0


@pytest.mark.parametrize("number", [0, 7])
def test_the_marks_are_no_part_of_the_finished_trace(number: int):
    assert is_own(clock_name(number))
