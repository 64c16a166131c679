"""The arguments of events as columns: each field is looked for where recorders write it, and kept where it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.format.span_names import LINE_CATEGORY, MODULE_CATEGORY
from deepscope.trace.kineto.decode import Args
from deepscope.trace.kineto.values import Table, ints
from deepscope.trace.model import Int32, Int64
from deepscope.trace.names import CONVOLUTIONS

__all__ = ["Arguments"]

Array = npt.NDArray[Any]

_NO_TEXT = b""


class Arguments:
    """Gathers the fields of events that have arguments; `rows` count the events from the first of the trace on.

    Args:
        strings: gets the call stacks at once, all other texts when they are asked for.
    """

    def __init__(self, strings: Table) -> None:
        self._strings = strings
        self._texts = Table({_NO_TEXT: 0})
        self._codes_of_texts: list[int] = []
        self._sparse: dict[str, list[tuple[Int64, Array]]] = defaultdict(list)

    def has_any(self, category: str) -> bool:
        """Whether any field is looked for in events of this category."""
        return _FIELDS.get(category) != ()

    def add(self, category: str, args: list[Args], names: Int32, rows: Int64) -> None:
        """Take the arguments of events of one category; `names` are indexes into the strings."""
        for field in _FIELDS.get(category, _ALL_FIELDS):
            if field == "concrete":
                self._add_concrete(args, names, rows)
            else:
                self._add_field(field, _READERS[field](args), rows)

    def _add_field(self, field: str, values: list[Any], rows: Int64) -> None:
        if field == "call_stack":
            if any(values):
                self._put_codes(field, self._codes_of_stacks(values), rows, none=-1)
        elif field in _TEXT_FIELDS:
            self._put_codes(field, self._codes_of_raw(values), rows, none=0)
        else:
            column = ints(values)
            if (column != -1).any():
                self._sparse[field].append((rows, column))

    def _add_concrete(self, args: list[Args], names: Int32, rows: Int64) -> None:
        """Those of convolutions: few operators, and long texts."""
        wanted = np.zeros(len(names), np.bool_)
        for name in CONVOLUTIONS:
            if (code := self._strings.get(name)) is not None:
                wanted |= names == code
        chosen = np.flatnonzero(wanted)
        if len(chosen):
            self._add_field("concrete", [args[i].concrete for i in chosen.tolist()], rows[chosen])

    def _codes_of_stacks(self, values: list[Any]) -> list[int]:
        strings = self._strings
        return [strings[text if isinstance(text, str) else str(text)] if text else -1 for text in values]

    def _codes_of_raw(self, values: list[Any]) -> list[int]:
        # JSON holds no NUL; one join costs half of what so many copies do.
        texts = b"\0".join(values).split(b"\0")
        if len(texts) != len(values):
            texts = [bytes(text) for text in values]
        table = self._texts
        return [table[text] for text in texts]

    def _put_codes(self, field: str, codes: list[int], rows: Int64, *, none: int) -> None:
        column = np.fromiter(codes, np.int32, len(codes))
        known = column != none
        if known.any():
            self._sparse[field].append((rows[known], column[known]))

    def join(self, other: Arguments, strings: Int32, count: int) -> None:
        """Take all of `other`, whose events follow the first `count`; `strings` are the indexes of its strings here."""
        texts = self._texts.codes(other._texts)
        for field, pairs in other._sparse.items():
            codes = strings if field == "call_stack" else texts
            for rows, values in pairs:
                self._sparse[field].append((rows + count, codes[values] if field in _TEXT_FIELDS else values))

    def column(self, name: str, count: int, dtype: npt.DTypeLike = np.int64) -> Array:
        """A field of `count` events, -1 where it is not; its parts are let go."""
        column = np.full(count, -1, dtype)
        for alias in (*_ALIASES.get(name, ()), name):
            for rows, values in self._sparse.pop(alias, []):
                column[rows] = np.where(values != -1, values, column[rows])
        return column

    def texts(self, name: str, count: int) -> Int32:
        """A field of JSON texts, as indexes into the strings; all strings must be in before the first call."""
        if not self._codes_of_texts:
            self._codes_of_texts = [
                self._strings[text.decode("utf-8", "replace")] if text else -1 for text in self._texts
            ]
        codes = np.array([*self._codes_of_texts, -1], np.int32)
        result: Int32 = codes[self.column(name, count, np.int32)]
        return result


_READERS: dict[str, Callable[[list[Args]], list[Any]]] = {
    "correlation": lambda args: [a.correlation for a in args],
    "connection_id": lambda args: [a.connection_id for a in args],
    "correlation_id": lambda args: [a.correlation_id for a in args],
    "external_id": lambda args: [a.external_id for a in args],
    "old_external_id": lambda args: [a.old_external_id for a in args],
    "sequence": lambda args: [a.sequence for a in args],
    "fwd_thread": lambda args: [a.fwd_thread for a in args],
    "device": lambda args: [a.device for a in args],
    "stream": lambda args: [a.stream for a in args],
    "npu_stream": lambda args: [a.npu_stream for a in args],
    "size_bytes": lambda args: [a.size_bytes for a in args],
    "mtia_size": lambda args: [a.mtia_size for a in args],
    "scope": lambda args: [a.scope for a in args],
    "call_stack": lambda args: [a.call_stack for a in args],
    "shapes": lambda args: [a.shapes for a in args],
    "old_shapes": lambda args: [a.old_shapes for a in args],
}
_TEXT_FIELDS = frozenset({"call_stack", "shapes", "old_shapes", "concrete"})

# What today's recorders write for the commonest categories; all else is searched for every field.
_ALL_FIELDS = (*_READERS, "concrete")
_OPERATOR_FIELDS = ("external_id", "sequence", "fwd_thread", "call_stack", "shapes", "concrete")
_RUNTIME_FIELDS = ("correlation", "external_id")
_DEVICE_FIELDS = ("correlation", "external_id", "device", "stream", "size_bytes")
_FIELDS: dict[str, tuple[str, ...]] = {
    "cpu_op": _OPERATOR_FIELDS,
    "user_annotation": _OPERATOR_FIELDS,
    "python_function": (),
    LINE_CATEGORY: ("scope",),
    MODULE_CATEGORY: ("scope",),
    "cuda_runtime": _RUNTIME_FIELDS,
    "cuda_driver": _RUNTIME_FIELDS,
    "kernel": _DEVICE_FIELDS,
    "gpu_memcpy": _DEVICE_FIELDS,
    "gpu_memset": _DEVICE_FIELDS,
}

# Other recorders' names of a field: read where the field itself is not there.
_ALIASES = {
    "correlation": ("connection_id",),
    "external_id": ("old_external_id",),
    "stream": ("npu_stream",),
    "size_bytes": ("mtia_size",),
    "shapes": ("old_shapes",),
}
