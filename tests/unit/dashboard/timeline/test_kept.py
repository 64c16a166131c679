"""A kept timeline answers as the one that was made; what is not whole, or of another trace, does not answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
import msgspec
import pytest

from deepscope import processes
from deepscope.dashboard.timeline import index
from deepscope.dashboard.timeline.columns import TimelineColumns
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.errors import NotATraceError
from deepscope.store import cache, load_profile
from deepscope.store.cache import cache_folder, load_columns
from deepscope.store.files import TraceFile, single_file
from random_traces import random_trace
from recorded_traces import each_trace


def open_timeline(path: Path | TraceFile, **options: Any) -> TimelineIndex:
    file = path if isinstance(path, TraceFile) else single_file(str(path))
    assert file is not None
    return index.open_timeline(file, **options)


def answers(index: TimelineIndex) -> list[bytes]:
    head = index.head()
    found: list[object] = [head, index.selection(0, head.end_ns)]
    found += [index.window(head.end_ns // part, head.end_ns, 700) for part in (1, 2, 3, 50)]
    found += [index.details(one) for one in range(0, head.slices, max(head.slices // 40, 1))]
    found += [index.search("a", limit=30)]
    found += [index.at_line(place.file, place.line) for place in head.places[:5]]
    return [msgspec.json.encode(one) for one in found]


def files() -> list[Path]:
    return list((cache_folder() / "kept").glob("*.timeline"))


@pytest.mark.parametrize("path", each_trace())
def test_a_kept_timeline_answers_as_the_one_that_was_made(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_timeline(path)
    monkeypatch.setattr(index, "make_timeline", None)  # nothing is made again
    again = open_timeline(path)
    assert again.columns is not made.columns
    assert answers(again) == answers(made)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return random_trace(3).write(tmp_path / "random.pt.trace.json")


def test_another_trace_does_not_use_it(trace: Path) -> None:
    open_timeline(trace)
    file = single_file(str(trace))
    assert file is not None
    assert load_columns("timeline", file, TimelineColumns, partial=False) is not None
    assert load_columns("timeline", file, TimelineColumns, partial=True) is None
    os.utime(trace, ns=(1, 1))
    changed = single_file(str(trace))
    assert changed is not None
    assert load_columns("timeline", changed, TimelineColumns, partial=False) is None


@pytest.mark.parametrize("apart_bytes", [0, 1 << 40])
def test_a_trace_whose_store_does_not_tell_its_versions_is_read_anew(
    trace: Path, monkeypatch: pytest.MonkeyPatch, apart_bytes: int
) -> None:
    monkeypatch.setattr(index, "APART_BYTES", apart_bytes)
    store = fsspec.filesystem("memory")
    store.pipe("/timeline.json", trace.read_bytes())
    bare = TraceFile("memory://timeline.json", size_bytes=0, mtime_ns=0)
    try:
        first = answers(open_timeline(bare))
        store.pipe("/timeline.json", random_trace(4).write(trace).read_bytes())
        assert answers(open_timeline(bare)) == answers(open_timeline(trace)) != first
    finally:
        store.rm("/timeline.json")


def test_other_code_does_not_use_it(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_timeline(trace)
    file = single_file(str(trace))
    assert file is not None
    monkeypatch.setattr(cache, "_own_fingerprint", lambda _: "edited")
    assert load_columns("timeline", file, TimelineColumns, partial=False) is None


def test_damage_is_noticed_and_the_trace_read_again(trace: Path) -> None:
    expected = answers(open_timeline(trace))
    (path,) = files()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[60] ^= 1
    for damaged in (b"", whole[:-1], whole + b"x", bytes(flipped), b"not a timeline", whole[:30], whole[:2_000]):
        path.unlink()
        path.write_bytes(damaged)
        assert answers(open_timeline(trace)) == expected
        assert path.read_bytes() == whole


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [random_trace(seed).write(tmp_path / f"{seed}.pt.trace.json") for seed in range(3)]
    open_timeline(traces[0])
    (first,) = files()
    os.utime(first, (1, 1))
    open_timeline(traces[1])
    before = set(files())
    open_timeline(traces[2])
    (last,) = set(files()) - before
    kept = (cache_folder() / "kept").iterdir()
    monkeypatch.setattr(cache, "LIMIT_BYTES", sum(path.stat().st_size for path in kept) - 1)
    last.unlink()
    open_timeline(traces[2])
    assert set(files()) == {*before, last} - {first}


@pytest.mark.parametrize("kind", ["timeline", "profile"])
def test_what_was_left_unfinished_is_removed(trace: Path, kind: str) -> None:
    folder = cache_folder() / "kept"
    folder.mkdir(parents=True)
    for name, age in (("old.tmp", 1), ("new.tmp", None)):
        (folder / name).write_bytes(b"half")
        if age:
            os.utime(folder / name, (age, age))
    if kind == "timeline":
        open_timeline(trace)
    else:
        load_profile(trace)
    assert [path.name for path in folder.glob("*.tmp")] == ["new.tmp"]


def test_a_cache_that_cannot_be_written_is_no_error(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(trace / "below a file"))
    assert open_timeline(trace).head().slices > 0


def test_progress_ends_with_the_whole(trace: Path) -> None:
    told: list[tuple[int, int]] = []
    for _ in range(2):
        open_timeline(trace, progress=lambda done, whole: told.append((done, whole)))
        assert told[-1] == (trace.stat().st_size, trace.stat().st_size)


def test_a_large_trace_is_read_in_a_process_of_its_own(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(open_timeline(trace, cache=False))
    monkeypatch.setattr(index, "APART_BYTES", 0)
    monkeypatch.setattr(index, "make_timeline", None)  # not here
    told: list[tuple[int, int]] = []
    assert answers(open_timeline(trace, progress=lambda done, whole: told.append((done, whole)))) == expected
    assert told[-1] == (trace.stat().st_size, trace.stat().st_size)


def test_what_is_no_trace_is_told_by_another_process_as_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "none.pt.trace.json"
    path.write_text("not a trace")
    told = []
    for apart in (1 << 40, 0):
        monkeypatch.setattr(index, "APART_BYTES", apart)
        with pytest.raises(NotATraceError) as raised:
            open_timeline(path)
        told.append(str(raised.value))
    assert told[0] == told[1]


def test_without_a_cache_or_a_process_it_is_made_here(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(open_timeline(trace, cache=False))
    monkeypatch.setattr(index, "APART_BYTES", 0)
    with monkeypatch.context() as patch:
        patch.setattr(processes.HelperProcess, "start", lambda *_, **__: None)
        assert answers(open_timeline(trace)) == expected
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(trace / "below a file"))
    assert answers(open_timeline(trace)) == expected
