"""Snapshots of torch's memory are read without running anything in them; what is none is told in a line."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest

from deepscope.errors import NotATraceError, NoTraceError
from deepscope.trace import memory_snapshots
from deepscope.trace.memory_snapshots import loads_plain, read_snapshot
from memory_snapshots import Allocator, of_line, write

PLAIN = {
    "text": "ü" * 300,
    "bytes": b"\x00" * 300,
    "none": None,
    "flags": [True, False, ()],
    "numbers": (0, -1, 255, 256, 65536, 1 << 40, -(1 << 62), 1.5),
    "nested": [[{"a": [(1, 2), (3,), (1, 2, 3, 4)]}]],
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back(protocol: int) -> None:
    shared = ["x"] * 300
    plain = {name: value for name, value in PLAIN.items() if protocol > 2 or name != "bytes"}  # 2 has a call for these
    content = {**plain, "many": [{"frames": shared, "n": n} for n in range(20_000)]}
    found = loads_plain(pickle.dumps(content, protocol), "a")
    assert found == content
    assert found["many"][0]["frames"] is found["many"][-1]["frames"]


class Ran(Exception):
    """Something in a pickle was run."""


def run() -> None:
    raise Ran


class Reduced:
    def __reduce__(self) -> Any:
        return run, ()


HOSTILE = {
    "reduce": pickle.dumps(Reduced()),
    "reduce_old": pickle.dumps({"segments": [Reduced()]}, 2),
    "global": b"\x80\x02cos\nsystem\n.",
    "stack_global": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "instance": b"\x80\x02(S'true'\nios\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent": b"\x80\x02K\x01Q.",
    "build": b"\x80\x02}}b.",
    "buffer": b"\x80\x05\x97.",
    "set": pickle.dumps({1, 2}),
    "object": pickle.dumps(Path("a")),
    "huge_number": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "text_protocol": pickle.dumps({"segments": []}, 0),
    "memo_in_the_clouds": b"\x80\x02}r\xff\xff\xff\x7f.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_before_it_runs(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.pickle"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(NotATraceError, match=name) as caught:
        read_snapshot(str(path))
    assert "\n" not in str(caught.value)


def test_the_unpickler_itself_names_no_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_snapshots, "_check", lambda *_: None)
    for data in HOSTILE.values():
        try:
            loads_plain(data, "a")
        except NotATraceError:
            continue
        assert data in (HOSTILE["set"], HOSTILE["text_protocol"], HOSTILE["memo_in_the_clouds"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80",
        b"\x80\x04",
        b"{}",
        bytes(range(256)) * 12,
        gzip.compress(b"", mtime=0),
        b"\x1f\x8b\x08",
        b"\x80\x04.",
        b"\x80\x04e.",
    ],
)
def test_what_is_no_pickle_is_told_in_a_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(content)
    with pytest.raises(NotATraceError, match=r"a\.pickle: [^\n]+$"):
        read_snapshot(str(path))


def test_a_missing_file_is_told() -> None:
    with pytest.raises(NoTraceError, match="no such file"):
        read_snapshot("/nowhere/a.pickle")


def test_a_cut_snapshot_is_told_wherever_it_ends(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.alloc(1000, of_line(3))
    whole = pickle.dumps(allocator.snapshot())
    path = tmp_path / "a.pickle"
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(NotATraceError):
            read_snapshot(str(path))


def test_too_many_lists_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_snapshots, "_MOST_CONTAINERS", 1000)
    with pytest.raises(NotATraceError, match="more than 1,000"):
        loads_plain(b"\x80\x04(" + b"]" * 2000 + b"e.", "a")


def test_a_packed_snapshot_is_read(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.alloc(1000, of_line(3))
    path = tmp_path / "a.pickle.gz"
    path.write_bytes(gzip.compress(pickle.dumps(allocator.snapshot())))
    assert len(read_snapshot(str(path)).segments) == 1


WRONG: dict[str, Any] = {
    "no table": [1],
    "no segments": {},
    "a list": {"segments": 3},
    "size": {"segments": [{"blocks": [{"size": "x"}], "total_size": 1}]},
    "total_size": {"segments": [{"blocks": [], "total_size": -1}]},
    "address": {"segments": [{"blocks": [], "total_size": 1, "address": 1.5}]},
    "device": {"segments": [{"blocks": [], "total_size": 1, "device": 10**6}]},
    "devices": {"segments": [], "device_traces": [[]] * 2000},
    "action": {"segments": [], "device_traces": [[{"action": 3}]]},
    "line": {"segments": [], "device_traces": [[{"action": "alloc", "frames": [{"line": True}]}]]},
    "a frame": {"segments": [], "device_traces": [[{"action": "alloc", "frames": [3]}]]},
    "its sizes": {
        "segments": [],
        "device_traces": [[{"action": "alloc", "addr": n, "size": 1 << 61} for n in range(9)]],
    },
    "an entry": {"segments": [], "device_traces": [[7]]},
}


@pytest.mark.parametrize("words", WRONG)
def test_what_torch_does_not_write_is_told_in_a_line(tmp_path: Path, words: str) -> None:
    path = write(tmp_path / "a.pickle", WRONG[words])
    with pytest.raises(NotATraceError, match=rf"a\.pickle: no memory snapshot of torch: [^\n]*{words}"):
        read_snapshot(str(path))


def test_stacks_that_are_equal_stand_once(tmp_path: Path) -> None:
    allocator = Allocator()
    for _ in range(3):
        allocator.alloc(1000, of_line(3))
    found = read_snapshot(str(write(tmp_path / "a.pickle", allocator.snapshot())))
    assert len(found.stacks) == 1
    assert found.stacks[0][5] == ("/home/me/train.py", 3, "step")
    assert [one.action for one in found.histories[0]] == ["segment_alloc", "alloc", "alloc", "alloc"]


def test_an_old_snapshot_has_its_stack_in_the_history_of_its_block(tmp_path: Path) -> None:
    history = [{"addr": 512, "real_size": 1000, "frames": of_line(3)}]
    block = {"size": 1024, "requested_size": 1000, "state": "active_allocated", "history": history}
    free = {"size": 512, "requested_size": 0, "state": "inactive"}
    segment = {"device": 0, "address": 0, "total_size": 1536, "blocks": [free, block]}
    found = read_snapshot(str(write(tmp_path / "a.pickle", {"segments": [segment]})))
    assert found.segments[0].blocks[1][:5] == (512, 1024, 1000, True, 0)
