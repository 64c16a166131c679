"""Dataclasses of arrays as files that are mapped, not read: a large one is there at once.

A file begins with a mark, a length and a digest. Behind them stands the description, in msgpack: the value, each array
as its number; then the arrays. A file is whole before it bears its name, and its head says how long it is.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.store.identity import digest

_MAGIC = b"deepscope columns\n"
_ALIGNED = 64
_TYPES = frozenset({"|b1", "|u1", "<i2", "<i4", "<i8", "<f4", "<f8"})

T = TypeVar("T")


class _Array(msgspec.Struct, array_like=True):
    """Where an array stands behind the description."""

    type: str
    shape: list[int]
    offset: int


class _Description(msgspec.Struct):
    arrays: list[_Array]
    value: msgspec.Raw
    size_bytes: int
    """Of all arrays."""


def encoded(value: object) -> Iterator[bytes | memoryview]:
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

    content = msgspec.msgpack.encode(value, enc_hook=number_of)
    head = msgspec.msgpack.encode(_Description(places, msgspec.Raw(content), end))
    start = _MAGIC + len(head).to_bytes(8, "little") + digest(head) + head
    yield start + bytes(_aligned(len(start)) - len(start))
    for array in arrays:
        if array.nbytes:
            yield array.reshape(-1).view(np.uint8).data
            yield bytes(_aligned(array.nbytes) - array.nbytes)


def mapped(path: Path, kind: type[T]) -> T:
    """The value in a file; its arrays cannot be written to.

    Raises:
        OSError: there is no such file.
        ValueError: it is not whole, or none of this machine's.
    """
    with path.open("rb") as stream:
        return decoded(memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)), kind)


def decoded(content: bytes | memoryview, kind: type[T]) -> T:
    """The value in what `encoded` made, without a copy of its arrays.

    Raises:
        ValueError: it is not whole, or none of this machine's.
    """
    content = memoryview(content)
    mark, length_end = len(_MAGIC), len(_MAGIC) + 8
    body = length_end + len(digest(b""))
    end = body + int.from_bytes(content[mark:length_end], "little")
    if content[:mark] != _MAGIC or digest(content[body:end]) != content[length_end:body]:
        raise ValueError("no columns")
    description = msgspec.msgpack.decode(content[body:end], type=_Description)
    begin = _aligned(end)
    if len(content) != begin + description.size_bytes:
        raise ValueError("cut")
    arrays = [_array(content, begin, one) for one in description.arrays]
    return msgspec.msgpack.decode(description.value, type=kind, dec_hook=lambda _, number: arrays[number])


def _array(content: memoryview, begin: int, one: _Array) -> npt.NDArray[Any]:
    if one.type not in _TYPES:
        raise ValueError(one.type)
    count = int(np.prod(one.shape, dtype=np.int64))
    flat = np.frombuffer(content, np.dtype(one.type), count, begin + one.offset) if count else np.zeros(0, one.type)
    return flat.reshape(one.shape)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
