"""A trace that ends early: an error that says where, or exactly the events before that place."""

import gzip
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deepscope.errors import NotATraceError, TruncatedTraceError
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


def _builder():
    builder = TraceBuilder(deviceProperties=[{"name": 'a "quoted" }, {"ph" name'}])
    for i in range(12):
        builder.op(f'aten::op{i} "}}, {{"', 10 * i, 7, dims=[[i, 2], []]).memory(10 * i + 1, 64)
    return builder


_DOCUMENT = _builder().document()
_DATA = {
    "plain": json.dumps(_DOCUMENT).encode(),
    "indented": json.dumps(_DOCUMENT, indent=1).encode(),
    "array": json.dumps(_DOCUMENT["traceEvents"]).encode(),
}
_NAMES = [e["name"] for e in _DOCUMENT["traceEvents"] if e["ph"] == "X"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cut")


def _names(trace):
    return [trace.strings[i] for i in trace.events.name]


def _whole_events(data):
    """Counted by another way: the longest prefix of events that the standard library decodes."""
    text = data.decode("utf-8", "ignore")
    start = text.find("[", text.find('"traceEvents"') if text.startswith("{") else 0)
    decoder, count, at = json.JSONDecoder(), 0, start + 1
    while True:
        while at < len(text) and text[at] in " \n,":
            at += 1
        try:
            event, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return count
        count += event["ph"] == "X"


@pytest.mark.parametrize("shape", _DATA)
@settings(max_examples=150, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
@example(share=0.9999)
def test_a_cut_anywhere_is_an_error_or_an_exact_prefix(folder, shape, share):
    data = _DATA[shape]
    cut = data[: int(len(data) * share)]
    path = folder / "t.json"
    path.write_bytes(cut)
    with pytest.raises((TruncatedTraceError, NotATraceError)) as info:
        read_trace(path)
    assert "\n" not in str(info.value)
    try:
        trace = read_trace(path, partial=True)
    except NotATraceError:
        assert b'"traceEvents"' not in cut
        return
    assert trace.truncated
    begun = b'"traceEvents": [' in cut or shape == "array"
    assert _names(trace) == (_NAMES[: _whole_events(cut)] if begun else [])


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_gzip_is_an_error_or_an_exact_prefix(folder, share):
    data = gzip.compress(_DATA["plain"], 6)
    path = folder / "t.json.gz"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises((TruncatedTraceError, NotATraceError)):
        read_trace(path)
    try:
        trace = read_trace(path, partial=True)
    except (TruncatedTraceError, NotATraceError):
        return
    assert trace.truncated
    assert _names(trace) == _NAMES[: len(_names(trace))]


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.05, 0.95), byte=st.integers(0, 255))
def test_damage_inside_a_gzip_is_never_passed_over(folder, share, byte):
    data = bytearray(gzip.compress(_DATA["plain"], 6))
    at = int(len(data) * share)
    if data[at] == byte:
        return
    data[at] = byte
    path = folder / "t.json.gz"
    path.write_bytes(data)
    with pytest.raises((TruncatedTraceError, NotATraceError)):
        read_trace(path)


@pytest.mark.parametrize("shape", ["plain", "indented"])
def test_a_cut_behind_the_last_event_is_told_too(folder, shape):
    path = folder / "t.json"
    path.write_bytes(_DATA[shape][: _DATA[shape].rindex(b"]") + 1])
    with pytest.raises(TruncatedTraceError, match="ends behind event 24, the last"):
        read_trace(path)
    assert _names(read_trace(path, partial=True)) == _NAMES


def test_the_message_says_what_where_and_what_to_do(folder):
    data = _DATA["plain"]
    path = folder / "t.json"
    path.write_bytes(data[: data.index(b"aten::op4")])
    with pytest.raises(TruncatedTraceError) as info:
        read_trace(path)
    where = "ends in the middle of event 9 (disk full while recording?)"
    assert str(info.value) == f"{path}: {where}; read the 8 events before it with partial=True"


def test_garbage_between_events_ends_the_trace_there(folder):
    data = _DATA["plain"].replace(b'"ph": "X"', b'"ph": ?!', 5).replace(b'"ph": ?!', b'"ph": "X"', 4)
    path = folder / "t.json"
    path.write_bytes(data)
    with pytest.raises(TruncatedTraceError, match="is damaged in event 9"):
        read_trace(path)
    assert _names(read_trace(path, partial=True)) == _NAMES[:4]
