"""A trace decoded by processes side by side: the same columns, and the same errors, as by one."""

import dataclasses
import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from deepscope.errors import NotATraceError, TruncatedTraceError
from deepscope.trace.kineto import parallel
from deepscope.trace.kineto.parallel import WORTH_BYTES, decode_part, workers_for
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from random_traces import random_trace


def contents(trace: Trace) -> dict:
    """The trace's tables with words in the place of indices: these go by which process saw a word first."""
    words = np.array([*trace.strings, ""], object)
    threads = np.array([str(thread) for thread in trace.threads], object)
    indexed = {
        **dict.fromkeys(("name", "category", "series", "call_stack", "shapes", "dtypes", "concrete"), words),
        "thread": threads,
    }

    def table(rows) -> dict:
        columns = {field.name: getattr(rows, field.name) for field in dataclasses.fields(rows)}
        return {name: (indexed[name][c] if name in indexed else c).tolist() for name, c in columns.items()}

    tables = {name: table(getattr(trace, name)) for name in ("events", "flows", "memory", "counters")}
    rest = {name: getattr(trace, name) for name in ("scopes", "metadata", "base_ns", "truncated")}
    return {**tables, **rest, "strings": sorted(trace.strings), "threads": sorted(threads)}


def same(one: Trace, other: Trace) -> bool:
    return contents(one) == contents(other)


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(parallel, "BATCH_BYTES", 3000)


@pytest.fixture
def joined(monkeypatch):
    """The parts that were decoded elsewhere and joined."""
    parts = []
    join = parallel.EventColumns.join

    def noted(columns, other):
        parts.append(other.count)
        join(columns, other)

    monkeypatch.setattr(parallel.EventColumns, "join", noted)
    return parts


def large_trace(seed: int = 3) -> dict:
    """Every table has rows: operators with arguments, device work, arrows, memory, counters, names of threads."""
    trace = random_trace(seed).document()
    once = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    again = [event for event in trace["traceEvents"] if event["ph"] != "M"]
    extra = [
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
         "args": {"Addr": 7, "Bytes": 512, "Total Allocated": 512, "Device Type": 1, "Device Id": 0}},
        {"ph": "C", "name": "queue", "pid": 9, "tid": 0, "ts": 5, "args": {"depth": 3}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": "later", "ts": 5, "dur": 1,
         "args": {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "Call stack": "a.py(3): f"}},
    ]  # fmt: skip
    trace["traceEvents"] = [*once, *again * 10, *extra, *again * 10, *extra]
    return trace


def write(path, trace) -> str:
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return str(path)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_columns_are_those_of_one_process(tmp_path, small_batches, joined, workers):
    path = write(tmp_path / "t.json.gz", large_trace())
    alone = read_trace(path, workers=0)
    assert not joined
    together = read_trace(path, workers=workers)
    assert len(joined) > 10
    assert len(alone.memory.ts_ns)
    assert len(alone.counters.ts_ns)
    assert len(alone.flows.id)
    assert (alone.events.shapes >= 0).any()
    assert same(alone, together)


def test_a_bare_array_is_read_too(tmp_path, small_batches, joined):
    path = write(tmp_path / "t.json.gz", large_trace()["traceEvents"])
    assert same(read_trace(path, workers=2), read_trace(path, workers=0))
    assert joined


def test_a_bare_array_without_events_is_no_trace(tmp_path, small_batches):
    path = write(tmp_path / "t.json.gz", [{"a": {"b": number}} for number in range(2000)])
    with pytest.raises(NotATraceError, match="without events"):
        read_trace(path, workers=2)


def test_events_in_two_halves_are_brought_together(tmp_path, small_batches, joined):
    trace = large_trace()
    events = trace["traceEvents"]
    half = len(events) // 2
    place = {"cat": "cpu_op", "name": "aten::begun", "pid": 1, "tid": 1}
    trace["traceEvents"] = [
        *events[:half],
        {"ph": "B", "ts": 1, **place},
        *events[half:],
        {"ph": "E", "ts": 9, **place},
    ]
    path = write(tmp_path / "t.json.gz", trace)
    together = read_trace(path, workers=2)
    assert joined
    assert "aten::begun" in together.strings
    assert same(together, read_trace(path, workers=0))


@pytest.mark.parametrize("damaged_event", ['{"ph": "X", "ts": }', '{"ph": "X" "ts": 3}'])
def test_damage_is_told_as_by_one_process(tmp_path, small_batches, damaged_event):
    text = json.dumps(large_trace())
    place = text.index('{"ph"', len(text) // 2)
    path = tmp_path / "t.json"
    path.write_text(text[:place] + damaged_event + ", " + text[place:])
    messages = []
    for workers in (0, 2):
        with pytest.raises(TruncatedTraceError) as raised:
            read_trace(path, workers=workers)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert same(read_trace(path, workers=0, partial=True), read_trace(path, workers=2, partial=True))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_a_cut_file_keeps_its_whole_events(tmp_path, small_batches, share):
    text = json.dumps(large_trace())
    path = tmp_path / "t.json"
    path.write_text(text[: int(len(text) * share)])
    alone = read_trace(path, workers=0, partial=True)
    assert alone.truncated
    assert same(alone, read_trace(path, workers=2, partial=True))


def test_a_name_that_looks_like_a_cut_hides_no_event(tmp_path, small_batches):
    trace = large_trace()
    for event in trace["traceEvents"][::7]:
        event["name"] = 'x}, {"ph": "X", "name": "' + event["name"]
    path = write(tmp_path / "t.json.gz", trace)
    assert same(read_trace(path, workers=2), read_trace(path, workers=0))


@pytest.mark.parametrize(
    "program", ["", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho something that is no message\ncat > /dev/null\n"],
    ids=["none", "ends", "speaks of something else"],
)  # fmt: skip
def test_without_processes_all_is_read_here(tmp_path, small_batches, joined, monkeypatch, program):
    path = write(tmp_path / "t.json.gz", large_trace())
    expected = read_trace(path, workers=0)
    if program:
        script = tmp_path / "python"
        script.write_text(program)
        script.chmod(0o755)
        program = str(script)
    monkeypatch.setattr(sys, "executable", program)
    assert same(read_trace(path, workers=2), expected)
    assert not joined


def test_a_trace_is_read_as_the_process_ends(tmp_path):
    path = write(tmp_path / "t.json.gz", large_trace())
    program = f"""
import atexit
from deepscope.trace.kineto import parallel
from deepscope.trace.read import read_trace
parallel.BATCH_BYTES = 3000
atexit.register(lambda: print(len(read_trace({path!r}, workers=1).events)))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == (f"{len(read_trace(path, workers=0).events)}\n", "")


def test_a_part_alone(tmp_path):
    whole = decode_part(b'[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]')
    assert whole is not None
    assert (whole.count, whole.read_events) == (1, 1)
    assert decode_part(b'[{"ph": "X", "name": "a"') is None
    assert decode_part(b'[{"ph": "B", "name": "a", "pid": 1, "tid": 1, "ts": 1}]') is None


def test_processes_are_started_where_they_are_worth_it(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 4)
    assert workers_for("a.json", WORTH_BYTES - 1) == 0
    assert workers_for("a.json", WORTH_BYTES) == 3
    assert workers_for("a.json.gz", WORTH_BYTES // 10) == 3
    monkeypatch.setattr(parallel, "cores", lambda: 1)
    assert workers_for("a.json", WORTH_BYTES) == 0
