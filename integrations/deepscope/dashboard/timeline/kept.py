"""Timelines kept in the user's cache folder as arrays that are mapped, not read: a large one is there at once.

A file begins with a mark, a length and a digest. Behind them stands the description, in msgpack: all columns, each
array as its number; then the arrays. A file is whole before it bears its name, and its head says how long it is.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.dashboard.timeline.columns import Columns
from deepscope.store.cache import cache_folder, code_fingerprint, digest, prune, write_whole
from deepscope.store.files import TraceFile

__all__ = ["LIMIT_BYTES", "can_keep", "load", "save"]

LIMIT_BYTES = 2 << 30
"""Timelines beyond this are removed, those unused for longest first."""

_MAGIC = b"deepscope timeline\n"
_PATTERN = "*.timeline"
_ALIGNED = 64
_PARTS = ("trace", "records", "analysis", "store", "report", "dashboard/timeline")
_TYPES = frozenset({"|u1", "<i4", "<i8", "<f8"})


class _Array(msgspec.Struct, array_like=True):
    """Where an array stands behind the description."""

    type: str
    shape: list[int]
    offset: int


class _Description(msgspec.Struct):
    arrays: list[_Array]
    columns: msgspec.Raw
    size_bytes: int
    """Of all arrays."""


def load(file: TraceFile, *, partial: bool) -> Columns | None:
    """The timeline that this very code made of this very file (path, size and time); None where none is whole."""
    try:
        path = _path(file, partial=partial)
        with path.open("rb") as stream:
            content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        found = _decoded(content)
    except (OSError, ValueError, RuntimeError, msgspec.MsgspecError):  # ValueError: an empty file
        return None
    with suppress(OSError):
        os.utime(path)
    return found


def _decoded(content: memoryview) -> Columns:
    """The columns in a file.

    Raises:
        ValueError: it is not whole, or none of this machine's.
    """
    mark, length_end = len(_MAGIC), len(_MAGIC) + 8
    body = length_end + len(digest(b""))
    end = body + int.from_bytes(content[mark:length_end], "little")
    if content[:mark] != _MAGIC or digest(content[body:end]) != content[length_end:body]:
        raise ValueError("no timeline")
    description = msgspec.msgpack.decode(content[body:end], type=_Description)
    begin = _aligned(end)
    if len(content) != begin + description.size_bytes:
        raise ValueError("cut")
    arrays = [_mapped(content, begin, one) for one in description.arrays]
    return msgspec.msgpack.decode(description.columns, type=Columns, dec_hook=lambda _, number: arrays[number])


def _mapped(content: memoryview, begin: int, one: _Array) -> npt.NDArray[Any]:
    if one.type not in _TYPES:
        raise ValueError(one.type)
    count = int(np.prod(one.shape, dtype=np.int64))
    flat = np.frombuffer(content, np.dtype(one.type), count, begin + one.offset) if count else np.zeros(0, one.type)
    return flat.reshape(one.shape)


def can_keep() -> bool:
    """Whether the cache folder can be written to."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder() / "timelines"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(folder, os.W_OK | os.X_OK)
    return False


def save(file: TraceFile, columns: Columns, *, partial: bool) -> None:
    """Keeps a timeline; a cache that cannot be written is no error, since it only saves time."""
    with suppress(OSError, RuntimeError):
        path = _path(file, partial=partial)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, _encoded(columns))
        prune(path.parent, LIMIT_BYTES, _PATTERN)


def _encoded(columns: Columns) -> Iterator[bytes | memoryview]:
    """A file's content, part by part."""
    arrays: list[npt.NDArray[Any]] = []
    places: list[_Array] = []
    end = 0

    def number_of(array: object) -> int:
        nonlocal end
        if not isinstance(array, np.ndarray):
            raise NotImplementedError(type(array))
        arrays.append(np.ascontiguousarray(array))
        places.append(_Array(array.dtype.str, list(array.shape), end))
        end += _aligned(array.nbytes)
        return len(arrays) - 1

    content = msgspec.msgpack.encode(columns, enc_hook=number_of)
    head = msgspec.msgpack.encode(_Description(places, msgspec.Raw(content), end))
    start = _MAGIC + len(head).to_bytes(8, "little") + digest(head) + head
    yield start + bytes(_aligned(len(start)) - len(start))
    for array in arrays:
        if array.nbytes:
            yield array.reshape(-1).view(np.uint8).data
            yield bytes(_aligned(array.nbytes) - array.nbytes)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def _path(file: TraceFile, *, partial: bool) -> Path:
    """The file's name holds all that the timeline depends on: the trace, the options and the code that made it."""
    words = (file.path, file.size_bytes, file.mtime_ns, file.token, partial, code_fingerprint(parts=_PARTS))
    name = digest("\0".join(map(str, words)).encode("utf-8", "surrogateescape")).hex()
    return cache_folder() / "timelines" / f"{name}.timeline"
