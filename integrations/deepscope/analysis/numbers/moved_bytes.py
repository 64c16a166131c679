"""Bytes that operators must at least move, from the sizes and types of their arguments."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.arguments import FLOATS, Tensor, arguments
from deepscope.analysis.numbers.byte_formulas import bytes_formula, bytes_of_call
from deepscope.analysis.numbers.flop_formulas import UNREADABLE
from deepscope.trace.arrays import distinct_places
from deepscope.trace.kineto.bounds import summable
from deepscope.trace.model import Int64, Trace

DTYPES = ("", "float32", "tf32", "bfloat16", "float16", "float8", "float64", "complex64", "other")
"""Types of what is computed with; the first stands for an unknown one."""
_LARGEST = 2**60
_WIDTHS = (0, 1, 2, 4, 8)


class Moved(NamedTuple):
    """What calls of operators move; both of shape (q,)."""

    size_bytes: Int64
    """-1 where it is not known."""
    dtype: npt.NDArray[np.uint8]
    """Of the first tensor of floats: a place in `DTYPES`."""


def moved_by(trace: Trace, events: Int64, widths: Int64) -> Moved:
    """Bytes of operators, each distinct call worked out once.

    Args:
        trace: any trace.
        events: the operators; shape (q,).
        widths: bytes of an element in lists of tensors, 0 where nothing tells; shape (q,).
    """
    size_bytes = np.full(len(events), -1, np.int64)
    dtype = np.zeros(len(events), np.uint8)
    columns = trace.events
    rows = np.flatnonzero(_has_formula(trace)[columns.name[events]] & (columns.dtypes[events] >= 0))
    chosen = events[rows]
    calls, place = _distinct(
        columns.name[chosen],
        columns.shapes[chosen],
        columns.dtypes[chosen],
        columns.strides[chosen],
        columns.concrete[chosen],
        np.searchsorted(_WIDTHS, widths[rows]),
    )
    found = [_of_call(trace.strings, call) for call in calls]
    if found:
        values = np.array([one[0] for one in found], np.int64)
        size_bytes[rows] = np.where(summable(values[place], _LARGEST), values[place], -1)
        dtype[rows] = np.array([one[1] for one in found], np.uint8)[place]
    return Moved(size_bytes, dtype)


def _has_formula(trace: Trace) -> Mask:
    return np.array([bytes_formula(text) is not None for text in trace.strings] + [False], np.bool_)


def _distinct(*columns: npt.NDArray[np.integer]) -> tuple[list[tuple[int, ...]], Int64]:
    """The different rows of some columns of small numbers from -1 on, and the place of each row among them."""
    first = np.zeros(0, np.int64)
    place = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, code = distinct_places(column)
        width = int(code.max(initial=0)) + 1
        _, place = distinct_places(place * width + code)
    first = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return [tuple(int(column[row]) for column in columns) for row in first.tolist()], place


def _of_call(strings: list[str], call: tuple[int, ...]) -> tuple[int, int]:
    """Bytes and type of a call; its words are indexes into `strings`, -1 for none."""
    name, shapes, dtypes, strides, concrete, width = call
    if shapes < 0:
        return -1, 0
    try:
        dims, words, steps = (json.loads(strings[one]) if one >= 0 else [] for one in (shapes, dtypes, strides))
        given = arguments(dims, words, steps, _WIDTHS[width])
        moved = bytes_of_call(strings[name], given, json.loads(strings[concrete]) if concrete >= 0 else [])
        if moved is not None:
            return moved, _computed_in([one for one in given if isinstance(one, Tensor)])
    except UNREADABLE:
        pass
    return -1, 0


def _computed_in(tensors: list[Tensor]) -> int:
    """The narrowest type of floats among tensors of two dimensions or more: biases and scales are often wider."""
    wide = [one for one in tensors if one.dtype in FLOATS and len(one.sizes) > 1]
    if not wide:
        return 0
    name = min(wide, key=lambda one: one.width).dtype
    return DTYPES.index(name) if name in DTYPES else DTYPES.index("other")


_TYPE_IN_KERNEL = re.compile(r"OpaqueType<(\d+)u?>|\b(double|float|c10::Half|c10::BFloat16|__nv_bfloat16|__half)\b")


def element_widths(trace: Trace, kernels: npt.NDArray[np.integer]) -> Int64:
    """Bytes of an element that kernels work on, as their names tell; 0 where they do not.

    `kernels` are names (indexes into the strings), shape (q,).
    """
    names, place = distinct_places(kernels)
    return np.array([_width_of(trace.strings[name]) for name in names.tolist()], np.int64)[place]


def _width_of(kernel: str) -> int:
    match = _TYPE_IN_KERNEL.search(kernel)
    if match is None:
        return 0
    width = int(match[1]) if match[1] and len(match[1]) == 1 else {"double": 8, "float": 4}.get(match[2] or "", 2)
    return width if width in _WIDTHS else 0
