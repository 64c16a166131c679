"""A snapshot of torch's memory as its file has it: segments with their blocks, and the history of each device.

torch writes it in `torch/csrc/cuda/Module.cpp` (`THCPModule_memorySnapshot`); `torch.cuda.memory._snapshot` describes
it. Snapshots before torch 2.1 have a block's stack in its `history`, and no times.
"""

from __future__ import annotations

import io
import pickle
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from deepscope.errors import NotATraceError
from deepscope.trace.kineto.source import TraceSource
from deepscope.trace.names import Frame

NO_STACK = -1
_MOST_FILE_BYTES = 1 << 30
_MOST_DEVICES = 1024
_LARGEST = 1 << 63
_MOST_BYTES_IN_ALL = 1 << 62
"""Of all blocks and entries: their sums are numbers of 64 bits."""
_LIVE = frozenset({"active_allocated", "active_pending_free", "active_awaiting_free"})


class Entry(NamedTuple):
    """What the allocator did once."""

    action: str
    """`alloc`, `free_requested`, `free_completed`, `segment_alloc`, `segment_free`, `segment_map`, `segment_unmap`,
    `snapshot` or `oom`; one that a later torch adds, too."""
    address: int
    """Of `oom` the bytes that the device had left."""
    size_bytes: int
    """As it was asked for: blocks are rounded up."""
    stack: int
    """Index into `MemorySnapshot.stacks`; -1 where none was recorded."""
    time_us: int
    """Unix time in microseconds; 0 where the snapshot has no times."""
    category: str
    """What the program or the file's writer calls it; "" for nothing."""


class Block(NamedTuple):
    """A piece of a segment."""

    address: int
    size_bytes: int
    requested_bytes: int
    is_live: bool
    """Held by a tensor, or waiting for another stream to be done with it."""
    stack: int
    category: str


class Segment(NamedTuple):
    """Memory that the allocator has of the device."""

    device: int
    size_bytes: int
    is_expandable: bool
    blocks: list[Block]


class Annotation(NamedTuple):
    """The begin or end of a `record_function`."""

    device: int
    name: str
    is_start: bool
    time_us: int


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The content of a snapshot."""

    segments: list[Segment]
    histories: list[list[Entry]]
    """By the number of the device, the oldest entry first."""
    annotations: list[Annotation]
    stacks: list[tuple[Frame, ...]]
    """Each distinct stack once, innermost first; frames of C++ among those of Python."""
    settings: dict[str, str] = field(default_factory=dict)
    """Of the allocator, those that are not empty."""


def read_snapshot(path: str) -> MemorySnapshot:
    """The snapshot at a path or an fsspec URL, gzip or not.

    Raises:
        NoTraceError: nothing is there.
        NotATraceError: it is no snapshot, it is damaged, or it holds more than plain values.
        TraceError: it cannot be read.
    """
    source = TraceSource(path)
    chunks, size = [], 0
    for chunk in source:
        chunks.append(chunk)
        size += len(chunk)
        if size > _MOST_FILE_BYTES:
            break
    if not size:
        raise NotATraceError(f"{path}: the file is empty")
    if source.damage:
        raise NotATraceError(f"{path}: {source.damage}; record the snapshot again")
    return snapshot_of(loads_plain(b"".join(chunks), path), path)


def snapshot_of(content: Any, name: str) -> MemorySnapshot:
    """The snapshot in what a pickle holds. Raises `NotATraceError` where it is none, as `name`."""
    try:
        return _Reader().snapshot(content)
    except _Malformed as error:
        raise NotATraceError(f"{name}: no memory snapshot of torch: {error}") from error


class _Malformed(Exception):
    """Something is not as torch writes it."""


class _Reader:
    def __init__(self) -> None:
        self._stacks: dict[tuple[int, ...], int] = {}
        self._of_list: dict[int, int] = {}
        self._of_frame: dict[int, int] = {}
        self._frames: dict[Frame, int] = {}

    def snapshot(self, content: Any) -> MemorySnapshot:
        whole = _dict(content, "it")
        segments = [self._segment(_dict(one, "a segment")) for one in _list(whole, "segments")]
        traces = _list(whole, "device_traces") if "device_traces" in whole else []
        if len(traces) > _MOST_DEVICES:
            raise _Malformed(f"{len(traces):,} devices")
        histories = [[self._entry(_dict(one, "an entry")) for one in _are_list(trace)] for trace in traces]
        noted = _list(whole, "external_annotations") if "external_annotations" in whole else []
        settings = whole.get("allocator_settings")
        named = settings.items() if isinstance(settings, dict) else ()
        sizes = sum(block.size_bytes + block.requested_bytes for segment in segments for block in segment.blocks)
        sizes += sum(segment.size_bytes for segment in segments)
        sizes += sum(one.size_bytes for history in histories for one in history)
        if sizes > _MOST_BYTES_IN_ALL:
            raise _Malformed("its sizes are none that memory has")
        frames = list(self._frames)
        return MemorySnapshot(
            segments,
            histories,
            [_annotation(_dict(one, "an annotation")) for one in noted],
            [tuple(frames[at] for at in stack) for stack in self._stacks],
            {str(name): value for name, value in named if isinstance(value, str) and value},
        )

    def _segment(self, found: dict[Any, Any]) -> Segment:
        address = _number(found, "address", 0)
        device = _number(found, "device", 0)
        if device >= _MOST_DEVICES:
            raise _Malformed(f"device {device:,}")
        blocks = []
        for one in _list(found, "blocks"):
            blocks.append(self._block(_dict(one, "a block"), address))
            address += blocks[-1].size_bytes
        is_expandable = found.get("is_expandable") is True
        return Segment(device, _number(found, "total_size"), is_expandable, blocks)

    def _block(self, found: dict[Any, Any], address: int) -> Block:
        size = _number(found, "size")
        requested, stack = _number(found, "requested_size", size), self._stack(found)
        history = found.get("history")
        if isinstance(history, list) and history:
            newest = _dict(history[0], "a block's history")
            requested, stack = _number(newest, "real_size", requested), self._stack(newest)
        is_live = _text(found, "state") in _LIVE
        return Block(_number(found, "address", address), size, requested, is_live, stack, _category(found))

    def _entry(self, found: dict[Any, Any]) -> Entry:
        action = _text(found, "action")
        return Entry(
            action,
            _number(found, "device_free" if action == "oom" else "addr", 0),
            _number(found, "size", 0),
            self._stack(found),
            _number(found, "time_us", 0),
            _category(found),
        )

    def _stack(self, found: dict[Any, Any]) -> int:
        frames = found.get("frames")
        if not frames:
            return NO_STACK
        known = self._of_list.get(id(frames))  # entries share their lists
        if known is None:
            stack = tuple(self._frame(one) for one in _are_list(frames))
            known = self._of_list[id(frames)] = self._stacks.setdefault(stack, len(self._stacks))
        return known

    def _frame(self, one: Any) -> int:
        known = self._of_frame.get(id(one))
        if known is None:
            found = _dict(one, "a frame")
            frame = Frame(_text(found, "filename"), _number(found, "line", 0), _text(found, "name"))
            known = self._of_frame[id(one)] = self._frames.setdefault(frame, len(self._frames))
        return known


def _annotation(found: dict[Any, Any]) -> Annotation:
    is_start = found.get("stage") == "START"
    return Annotation(_number(found, "device", 0), _text(found, "name"), is_start, _number(found, "time_us", 0))


def _category(found: dict[Any, Any]) -> str:
    for name in ("category", "user_metadata"):
        if isinstance(value := found.get(name), str) and value:
            return value
    return ""


def _dict(value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _Malformed(f"{what} is no table")
    return value


def _list(found: dict[Any, Any], name: str) -> list[Any]:
    if name not in found:
        raise _Malformed(f"it has no {name}")
    return _are_list(found[name])


def _are_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Malformed("a list is missing")
    return value


def _text(found: dict[Any, Any], name: str) -> str:
    value = found.get(name, "")
    if not isinstance(value, str):
        raise _Malformed(f"{name} is no text")
    return value


def _number(found: dict[Any, Any], name: str, default: int | None = None) -> int:
    value = found.get(name, default)
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise _Malformed(f"{name} is no number")
    return value


# Pickles of plain types alone: every instruction is checked before any is carried out. Those that name a class, call
# something or reach outside the file (`GLOBAL`, `REDUCE`, `BUILD`, `PERSID`, `EXT1`, …) are none of those that pass.
# https://github.com/python/cpython/blob/main/Lib/pickletools.py describes them.

_MOST_CONTAINERS = 1 << 25
"""Each takes 64 bytes or more once it is loaded, and one in the file."""

_SHORT = re.compile(
    rb"(?:[(}\])Naeust\x85-\x89\x94]|h.|K.|M..|[jJ].{4}|G.{8}|\x95.{8}"
    rb"|\x8a(?:\x00|\x01.|\x02..|\x03...|\x04.{4}|\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8})){1,4096}",
    re.DOTALL,
)
"""Instructions of one length: marks, containers and their items, constants, numbers of at most 64 bits, what was
remembered."""
_TEXT_SIZES = {ord("\x8c"): 1, ord("C"): 1, ord("X"): 4, ord("B"): 4, ord("q"): 0, ord("r"): 0}
"""Instructions with a text or bytes → bytes of the length before it; `q` and `r` remember what is there."""
_CONTAINERS = (b"]", b"}", b")")


def loads_plain(data: bytes, name: str) -> Any:
    """What a pickle of protocol 2 or later holds: dicts, lists, tuples, str, bytes, int, float, bool and None.

    Args:
        data: the pickle.
        name: what messages call it.

    Raises:
        NotATraceError: it is no pickle, it is damaged, too large, or holds anything else; nothing of it has run.
    """
    _check(data, name)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except NotATraceError:
        raise
    except Exception as error:  # every kind of damage has a class of its own
        raise NotATraceError(f"{name}: a damaged pickle ({type(error).__name__}); record the snapshot again") from error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise NotATraceError(f"a pickle that names {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002
        raise NotATraceError("a pickle that reaches outside itself")


def _check(data: bytes, name: str) -> None:
    if len(data) < 2 or data[0] != 0x80 or not 2 <= data[1] <= 5:
        raise NotATraceError(f"{name}: no memory snapshot: it is not a pickle as torch writes it")
    if len(data) > _MOST_FILE_BYTES:
        raise NotATraceError(
            f"{name}: more than {_MOST_FILE_BYTES >> 30} GiB; "
            "record fewer entries (max_entries of _record_memory_history)"
        )
    at = 2
    containers = remembered = 0
    while True:
        found = _SHORT.match(data, at)
        if found is not None:
            containers += sum(data.count(one, at, found.end()) for one in _CONTAINERS)
            if containers > _MOST_CONTAINERS:
                raise NotATraceError(f"{name}: more than {_MOST_CONTAINERS:,} lists and tables; record fewer entries")
            remembered += data.count(b"\x94", at, found.end())
            at = found.end()
            continue
        if at >= len(data):
            raise NotATraceError(f"{name}: the pickle ends early; record the snapshot again")
        code = data[at]
        if code == ord("."):
            return
        width = _TEXT_SIZES.get(code)
        if width is None:
            raise NotATraceError(
                f"{name}: not read: at byte {at:,} it has more than plain values, which a memory snapshot never has"
            )
        if width:
            at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
            continue
        width = 1 if code == ord("q") else 4
        # What is remembered is numbered without gaps; a large number would have the reader make room for all below it.
        if int.from_bytes(data[at + 1 : at + 1 + width], "little") > remembered:
            raise NotATraceError(f"{name}: a damaged pickle (at byte {at:,}); record the snapshot again")
        remembered += 1
        at += 1 + width
