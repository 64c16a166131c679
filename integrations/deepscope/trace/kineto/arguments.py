"""The arguments of events as columns: each field is looked for where recorders write it, and kept where it is."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from enum import Enum, auto
from itertools import compress
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_values
from deepscope.trace.format.span_names import LINE_CATEGORY, MODULE_CATEGORY, OFF_CPU_CATEGORY, RECORDING_CATEGORY
from deepscope.trace.kineto.decode import MEMORY_FIELDS, NOTHING, Args
from deepscope.trace.model import Int32, Int64, Messages
from deepscope.trace.names import VIEWS, WITH_NUMBERS, announces_collective

_MOST = 2.0**40
"""Of a number with a fraction."""


class Interned(dict[Any, int]):
    """Value → index, in order of first sight."""

    def __missing__(self, value: Any) -> int:
        index = self[value] = len(self)
        return index

    def codes(self, values: Iterable[Any]) -> Int32:
        """The index of each value."""
        codes = [self[value] for value in values]
        return np.fromiter(codes, np.int32, len(codes))


def as_int(value: object) -> int:
    """An id, whatever its type: words become a hash, numbers beyond 64 bits wrap, -1 for nothing."""
    if isinstance(value, str):
        is_number = len(value) < 40 and value.lstrip("-").isdecimal()
        value = int(value) if is_number else zlib.crc32(value.encode("utf-8", "replace"))
    elif isinstance(value, float):
        value = int(value) if abs(value) < 2.0**63 else -1
    if not isinstance(value, int):
        return -1
    if not -(2**63) <= value < 2**64:
        return -1
    return int(value) if value < 2**63 else int(value) - 2**64


def ints(values: list[Any]) -> Int64:
    """`as_int` of each; lists of nothing but integers, the usual ones, at once."""
    if not values:
        return np.zeros(0, np.int64)
    with suppress(ValueError):  # lists of different lengths among them
        array = np.array(values)
        if array.dtype == np.int64 and array.ndim == 1:
            return array
    return np.fromiter(map(as_int, values), np.int64, len(values))


def fractions(values: list[Any]) -> npt.NDArray[np.float64]:
    """Each as a number; -1 for nothing, for words and for what is too large or less than 0."""
    array = np.zeros(0)
    with suppress(ValueError, OverflowError):  # lists of different lengths, integers beyond 64 bits
        array = np.array(values)
    if array.dtype.kind not in "if" or array.shape != (len(values),):
        plain = [float(value) if type(value) in {int, float} and abs(value) < _MOST else -1.0 for value in values]
        array = np.array(plain, np.float64)
    with np.errstate(invalid="ignore"):
        known = (array >= 0) & (array < _MOST)
    return np.where(known, array, -1.0).astype(np.float64)


Array = npt.NDArray[Any]


class _Kind(Enum):
    NUMBER = auto()
    FRACTION = auto()
    """A number that need not be whole."""
    STRING = auto()
    JSON = auto()
    """The text of a JSON value; each is decoded where it occurs first."""

    @property
    def is_text(self) -> bool:
        """Whether its column has indexes into the strings."""
        return self in (_Kind.STRING, _Kind.JSON)


_ALSO: dict[str, tuple[str, ...]] = {
    "correlation": ("connection_id",),
    "external_id": ("old_external_id",),
    "stream": ("npu_stream",),
    "size_bytes": ("mtia_size",),
    "region": ("region_object", "region_text", "name"),
    "shapes": ("old_shapes",),
}
"""Other recorders' names of a field: read where the field itself is not there."""


def _kind_of(field: msgspec.structs.FieldInfo) -> _Kind:
    """By what `Args` has in place of a field that is not there."""
    if field.name == "blocks_per_sm":
        return _Kind.FRACTION
    if field.default is NOTHING:
        return _Kind.JSON
    return _Kind.STRING if field.default is None else _Kind.NUMBER


_KINDS = {one.name: _kind_of(one) for one in msgspec.structs.fields(Args) if one.name not in MEMORY_FIELDS}
"""Of all fields of events that have a duration."""

_OF_MOVING = ("dtypes", "strides")
_OF_COLLECTIVES = tuple(one.name for one in fields(Messages) if one.name != "event")
_OF_GRAPHS = ("region", "region_object", "region_text", "name", "region_pass")
_OF_SOME = (*_OF_MOVING, "concrete", *_OF_COLLECTIVES, *_OF_GRAPHS)
_OF_OPERATORS = (
    "external_id",
    "sequence",
    "fwd_thread",
    "call_stack",
    "shapes",
    *_OF_MOVING,
    "concrete",
    *_OF_COLLECTIVES,
)
_OF_CALLS = ("correlation", "external_id")
_OF_DEVICE_WORK = ("correlation", "external_id", "device", "stream", "size_bytes", "graph_node", *_OF_GRAPHS)
_OF_LAUNCHES = ("grid", "block", "registers", "shared_memory", "blocks_per_sm")
_WRITTEN: dict[str, tuple[str, ...]] = {
    "cpu_op": _OF_OPERATORS,
    "user_annotation": _OF_OPERATORS,
    "python_function": (),
    LINE_CATEGORY: ("scope",),
    MODULE_CATEGORY: ("scope",),
    OFF_CPU_CATEGORY: (),
    RECORDING_CATEGORY: (),
    "cuda_runtime": _OF_CALLS,
    "cuda_driver": _OF_CALLS,
    "kernel": (*_OF_DEVICE_WORK, "occupancy", *_OF_LAUNCHES, *_OF_COLLECTIVES),
    "gpu_memcpy": _OF_DEVICE_WORK,
    "gpu_memset": _OF_DEVICE_WORK,
}
"""What today's recorders write for the commonest categories; all else is searched for every field.

Long texts are kept where something is worked out from them: `concrete` for convolutions and what is like them,
`dtypes` and `strides` for all operators but those that only make a view or room. What is said of collectives is read
where one is named, regions in the work of CUDA graphs."""


class _Texts(dict[bytes, int]):
    """JSON text → its index among the strings, -1 for no text."""

    def __init__(self, strings: Interned) -> None:
        super().__init__({b"": -1})
        self._strings = strings

    def __missing__(self, text: bytes) -> int:
        index = self[text] = self._strings[text.decode("utf-8", "replace")]
        return index


class Arguments:
    """Gathers the fields of events that have arguments; `strings` gets their texts."""

    def __init__(self, strings: Interned) -> None:
        self._strings = strings
        self._texts = _Texts(strings)
        self._sparse: dict[str, list[tuple[Int64, Array]]] = defaultdict(list)
        self._announces = np.zeros(0, np.int8)
        """By name: whether such events tell of a collective; -1 where nobody has asked."""

    def __getstate__(self) -> dict[str, Any]:
        """What `join` needs, for another process."""
        return {"_sparse": self._sparse}

    def has_any(self, category: str) -> bool:
        """Whether any field is looked for in events of this category."""
        return _WRITTEN.get(category) != ()

    def add(self, category: str, args: list[Args], names: Int32, rows: Int64) -> None:
        """Take the arguments of events of one category.

        Args:
            names: indexes into the strings; shape (n,).
            rows: the events' numbers, from the first of the trace on; shape (n,).
        """
        wanted_fields = _WRITTEN.get(category, _KINDS)
        for field in wanted_fields:
            if field not in _OF_SOME:
                column = self._put(field, list(map(attrgetter(field), args)), rows)
                if field == "graph_node":
                    self._put_chosen(_OF_GRAPHS, args, rows, column > 0)
        if "collective" in wanted_fields:
            self._put_chosen(_OF_COLLECTIVES, args, rows, self._of_collectives(names))
        if "concrete" not in wanted_fields:
            return
        self._put_chosen(_OF_MOVING, args, rows, ~self._named(names, VIEWS))
        self._put_chosen(("concrete",), args, rows, self._named(names, WITH_NUMBERS))

    def _put_chosen(
        self, fields: tuple[str, ...], args: list[Args], rows: Int64, wanted: npt.NDArray[np.bool_]
    ) -> None:
        if wanted.any():
            chosen = list(compress(args, wanted.tobytes()))
            for field in fields:
                self._put(field, list(map(attrgetter(field), chosen)), rows[wanted])

    def _of_collectives(self, names: Int32) -> npt.NDArray[np.bool_]:
        """Which names (indexes into the strings) are those of events that tell of a collective."""
        known = self._announces
        if len(known) < len(self._strings):
            known = np.full(len(self._strings), -1, np.int8)
            known[: len(self._announces)] = self._announces
            self._announces = known
        unknown = distinct_values(names[known[names] < 0])
        if len(unknown):
            texts = list(self._strings)
            known[unknown] = [announces_collective(texts[code]) for code in unknown.tolist()]
        return np.asarray(known[names] > 0)

    def _named(self, names: Int32, wanted: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Which names (indexes into the strings) are among the wanted ones."""
        table = np.zeros(len(self._strings), np.bool_)
        for name in wanted:
            if (code := self._strings.get(name)) is not None:
                table[code] = True
        return np.asarray(table[names])

    def _put(self, field: str, values: list[Any], rows: Int64) -> Array:
        """Take the values of a field, and return them as a column."""
        column = self._column(_KINDS[field], values)
        known = column != -1
        if known.any():
            self._sparse[field].append((rows, column) if known.all() else (rows[known], column[known]))
        return column

    def _column(self, kind: _Kind, values: list[Any]) -> Array:
        if kind is _Kind.NUMBER:
            return ints(values)
        if kind is _Kind.FRACTION:
            return fractions(values)
        if kind is _Kind.STRING:
            if not any(values):
                return np.full(len(values), -1, np.int32)
            strings = self._strings
            codes = [strings[text if isinstance(text, str) else str(text)] if text else -1 for text in values]
        else:
            # JSON holds no NUL; one join costs half of what so many copies do.
            texts = b"\0".join(values).split(b"\0")
            if len(texts) != len(values):
                texts = [bytes(text) for text in values]
            table = self._texts
            codes = [table[text] for text in texts]
        return np.fromiter(codes, np.int32, len(codes))

    def join(self, other: Arguments, strings: Int32, count: int) -> None:
        """Take all of `other`, whose events follow the first `count`; `strings` are the indexes of its strings here."""
        for field, pairs in other._sparse.items():
            for rows, values in pairs:
                self._sparse[field].append((rows + count, strings[values] if _KINDS[field].is_text else values))

    def of_collectives(self) -> tuple[Int64, dict[str, Int64]]:
        """The events that tell of a collective, ascending, and what they tell, -1 where it is absent; parts let go."""
        parts = {field: self._sparse.pop(field, []) for field in _OF_COLLECTIVES}
        places = [rows for pairs in parts.values() for rows, _ in pairs]
        rows_with_values = distinct_values(np.concatenate(places)) if places else np.zeros(0, np.int64)
        columns = {}
        for field, pairs in parts.items():
            columns[field] = np.full(len(rows_with_values), -1, np.int64)
            for rows, values in pairs:
                columns[field][np.searchsorted(rows_with_values, rows)] = values
        return rows_with_values, columns

    def column(self, name: str, count: int, dtype: npt.DTypeLike = np.int64) -> Array:
        """A field of `count` events, -1 where it is absent (texts: indexes into the strings); its parts are let go."""
        column = np.full(count, -1, dtype)
        for alias in (*_ALSO.get(name, ()), name):
            for rows, values in self._sparse.pop(alias, []):
                column[rows] = values
        return column
