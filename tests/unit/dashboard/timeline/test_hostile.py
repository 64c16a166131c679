"""Traces of strangers: names that a terminal or a page would interpret, times that cannot be, threads without end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from deepscope.analysis.ownership.attribution import attribute
from deepscope.dashboard.timeline.build import build_timeline
from deepscope.dashboard.timeline.columns import MOST_ROWS
from deepscope.dashboard.timeline.index import TimelineIndex, open_timeline
from deepscope.dashboard.timeline.tracks import MOST_TRACKS
from deepscope.store.files import single_file
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

Open = Callable[[TraceBuilder], TimelineIndex]


def opened(tmp_path: Path, events: list[dict[str, object]]) -> TimelineIndex:
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return TimelineIndex(build_timeline(attribute(read_trace(str(path)))))


def everything(index: TimelineIndex) -> bytes:
    """All that can be asked of a small timeline, as JSON."""
    head = index.head()
    answers: list[object] = [head, index.window(0, head.end_ns + 1, 500), index.selection(0, head.end_ns + 1)]
    answers += [index.details(one) for one in range(min(head.slices, 50))]
    answers += [index.search(text) for text in ("a", "\x1b", "<script>", "")]
    return msgspec.json.encode(answers)


def texts_in(answer: object) -> Iterator[str]:
    """All texts of an answer but its names of fields."""
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, dict):
        yield from (text for value in answer.values() for text in texts_in(value))
    elif isinstance(answer, list):
        yield from (text for value in answer for text in texts_in(value))


def test_nothing_that_is_obeyed_comes_out(tmp_path: Path) -> None:
    names = ["\x1b[31mred", "evil\u202etxt", "<script>alert(1)</script>", "\ud800lone", "two\nlines", "", "x" * 10_000]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": "p\x1b", "tid": f"t\u202e{number}", "ts": number, "dur": 1,
         "args": {"Input Dims": "\x1b\u202e"}}
        for number, name in enumerate(names)
    ]  # fmt: skip
    events.append(
        {"ph": "M", "name": "thread_name", "pid": "p\x1b", "tid": "t\u202e1", "args": {"name": "n\x1b\u202e"}}
    )
    events.append({"ph": "C", "name": "count\x1b\u202e", "pid": 1, "tid": 1, "ts": 2, "args": {"s\ud800": 5}})
    index = opened(tmp_path, events)
    words = list(texts_in(json.loads(everything(index))))
    assert any("\\x1b[31mred" in word for word in words)
    assert all(word.isprintable() for word in words)
    long = index.search("xxx").found[0]
    assert len(long.name) <= 160
    assert len(index.details(long.slice).name) == 10_000


def test_times_that_cannot_be_leave_the_others_in_sight(tmp_path: Path) -> None:
    times: list[object] = [-5, 0, 1e300, 9e18, "x", None, 12.5, 2**70]
    events = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": ts, "dur": 3} for ts in times]
    events += [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 5, "dur": -3}]
    index = opened(tmp_path, events)
    assert everything(index)
    assert index.head().slices > 0


@pytest.mark.parametrize("staggered", [False, True])
def test_threads_without_end_share_a_track(tmp_path: Path, staggered: bool) -> None:
    count = 3_000
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"op{n % 7}",
            "pid": 1,
            "tid": n,
            "ts": n if staggered else 0,
            "dur": 5_000,
        }
        for n in range(count)
    ]
    index = opened(tmp_path, events)
    head = index.head()
    assert len(head.tracks) <= MOST_TRACKS + 2
    (shared,) = (track for track in head.tracks if "other threads" in track.title)
    assert shared.rows == MOST_ROWS
    assert sum(track.slices for track in head.tracks) == count
    window = index.window(0, head.end_ns, 1_000)
    assert sum(sum(track.count) for track in window.tracks) == count
    deepest = {(track.id, row): end for track in window.tracks for row, end in zip(track.row, track.end, strict=True)}
    assert len(deepest) > MOST_ROWS


def test_deep_nests_end_in_the_last_row(timeline_of: Open) -> None:
    builder = TraceBuilder()
    for depth in range(1_000):
        builder.op("deep", depth, 4_000 - 2 * depth)
    index = timeline_of(builder)
    (track,) = index.head().tracks
    assert (track.rows, track.slices) == (MOST_ROWS, 1_000)
    (window,) = index.window(0, 4_000, 100).tracks
    assert sum(window.count) == 1_000
    last = [(start, end, busy) for start, end, busy, row in zip(window.start, window.end, window.busy, window.row,
                                                               strict=True) if row == MOST_ROWS - 1]  # fmt: skip
    assert last == [(MOST_ROWS - 1, 4_000 - (MOST_ROWS - 1), 4_000 - 2 * (MOST_ROWS - 1))]


def test_a_trace_without_events_has_an_empty_timeline(tmp_path: Path) -> None:
    index = opened(tmp_path, [])
    assert index.head().slices == 0
    assert index.head().tracks == []
    assert everything(index)


def test_a_timeline_is_opened_from_a_broken_trace_when_asked(tmp_path: Path) -> None:
    whole = TraceBuilder().op("aten::mm", 0, 10).op("aten::add", 20, 10).dumps()
    path = tmp_path / "cut.pt.trace.json"
    path.write_bytes(whole[: whole.index(b"aten::add") + 4])
    file = single_file(str(path))
    assert file is not None
    assert open_timeline(file, partial=True).head().slices == 1
