"""What little files that unpack to much, and much of nothing, cost to read: a clear error, and time in proportion."""

from __future__ import annotations

import gzip
import json

import pytest

from deepscope.errors import TraceError, TruncatedTraceError, VariableError
from deepscope.trace.kineto import pieces
from deepscope.trace.kineto.pieces import spans
from deepscope.trace.kineto.source import UnpackLimit
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


def _built():
    builder = TraceBuilder(deviceProperties=[{"id": 0}])
    for i in range(40):
        builder.op("aten::mm", 10 * i, 7, dims=[])
    return builder


def _bomb(path, size):
    """A trace and so many blanks behind it, in members of a megabyte each."""
    path.write_bytes(gzip.compress(_built().dumps()) + gzip.compress(b" " * (1 << 20)) * (size >> 20))
    return path


def test_a_file_that_unpacks_to_hundreds_of_times_its_size_is_refused(tmp_path):
    path = _bomb(tmp_path / "bomb.json.gz", 200 << 20)
    with pytest.raises(TraceError) as info:
        read_trace(path)
    assert str(info.value).startswith(f"{path}: unpacks to more than 100 times its size")
    assert "DEEPSCOPE_MAX_UNPACKED_GB" in str(info.value)


def test_the_limit_can_be_set_and_lifted(tmp_path, monkeypatch):
    path = _bomb(tmp_path / "bomb.json.gz", 30 << 20)
    assert len(read_trace(path).events) == 40
    monkeypatch.setenv("DEEPSCOPE_MAX_UNPACKED_GB", "0.01")
    with pytest.raises(TraceError, match=r"unpacks to more than 0\.01 GB"):
        read_trace(path)
    monkeypatch.setenv("DEEPSCOPE_MAX_UNPACKED_GB", "0")
    assert len(read_trace(path).events) == 40
    monkeypatch.setenv("DEEPSCOPE_MAX_UNPACKED_GB", "much")
    with pytest.raises(VariableError, match="must be a number of gigabytes"):
        read_trace(path)


def test_by_default_no_more_than_the_ratio_is_unpacked_beyond_what_harms_nobody():
    limit = UnpackLimit.of_environment()
    limit.check("x", 1000, 128 << 20)
    limit.check("x", 100 << 20, 9 << 30)
    with pytest.raises(TraceError):
        limit.check("x", 1 << 20, (128 << 20) + 1)


def _padded(blanks):
    """The same trace with blanks in every place that may have them."""
    document = _built().document()
    events = [json.dumps(event) for event in document.pop("traceEvents")]
    between, head = f"{blanks},{blanks}".join(events), json.dumps(document)[1:-1]
    inner = events[0].replace('"tid"', f'{blanks}"tid"{blanks}')
    return {
        "in front": f'{blanks}{{{head}, "traceEvents": [{events[0]}]}}',
        "in front of an array": f"{blanks}[{events[0]}]",
        "in the head": f'{{{blanks}{head},{blanks}"traceEvents": [{events[0]}]}}',
        "around the colon": f'{{"traceEvents"{blanks}:{blanks}[{events[0]}]}}',
        "before the first": f'{{"traceEvents": [{blanks}{events[0]}]}}',
        "between two": f'{{"traceEvents": [{between}]}}',
        "in an event": f'{{"traceEvents": [{inner}]}}',
        "before the end": f'{{"traceEvents": [{events[0]}{blanks}]{blanks}}}',
        "behind it all": f'{{"traceEvents": [{events[0]}], {head}}}{blanks}',
        "behind an array": f"[{events[0]}]{blanks}",
    }


@pytest.mark.parametrize("place", _padded(""))
def test_blanks_change_nothing_wherever_they_stand(tmp_path, place):
    path = tmp_path / "t.json"
    path.write_text(_padded("")[place])
    expected = read_trace(path)
    path.write_text(_padded(" \n" * 100_000)[place])
    found = read_trace(path)
    assert found.events.start_ns.tolist() == expected.events.start_ns.tolist()
    assert (found.metadata, found.truncated) == (expected.metadata, False)


def test_an_event_with_many_empty_lists_is_decoded_once(tmp_path):
    lists = {f"a{i}": [] for i in range(400_000)}
    path = _built().op("aten::add", 999, 5, **lists).write(tmp_path / "t.json")
    assert len(read_trace(path).events) == 41


@pytest.mark.parametrize("piece", ['{"traceEvents":[', "[", '{"a":'])
def test_nesting_by_the_megabyte_ends_at_once(tmp_path, piece):
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + json.dumps(_built().events)[1:-1] + "," + piece * (8_000_000 // len(piece)))
    with pytest.raises(TruncatedTraceError, match="is nested without end in event 41"):
        read_trace(path)
    assert len(read_trace(path, partial=True).events) == 40


def test_a_head_that_names_the_events_again_and_again_is_given_up(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"a": ' + '{"traceEvents":[' * 200_000)
    with pytest.raises((TruncatedTraceError, TraceError)):
        read_trace(path)


def test_events_of_nothing_by_the_million_are_cut_where_they_end(tmp_path, monkeypatch):
    looked_at = []
    monkeypatch.setattr(pieces, "spans", lambda buffer: looked_at.append(len(buffer)) or spans(buffer))
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + "{}," * 1_000_000 + json.dumps(_built().events)[1:-1] + "]}")
    assert len(read_trace(path).events) == 40
    assert not looked_at
