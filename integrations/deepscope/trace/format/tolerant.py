"""Structures from what strangers wrote: what is well formed is kept, the rest stays at its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

_MALFORMED = (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError)


def salvaged(value: dict[Any, Any], kind: Any) -> Any:
    """Raises one of `_MALFORMED` where a field without a default is not well formed."""
    with suppress(*_MALFORMED):
        return msgspec.convert(value, kind)
    found = {}
    for name, of_field in _fields(kind).items():
        if name in value:
            with suppress(*_MALFORMED):
                found[name] = _part(value[name], of_field)
    return kind(**found)


def _part(value: Any, kind: Any) -> Any:
    """`value` as `kind`; lists and mappings keep what is well formed. Raises one of `_MALFORMED` otherwise."""
    with suppress(*_MALFORMED):
        return msgspec.convert(value, kind)
    if get_origin(kind) is list and isinstance(value, list):
        (element,) = get_args(kind)
        rows = (_row(one, element) for one in value)
        return [row for row in rows if row is not None or NoneType in get_args(element)]
    if get_origin(kind) is dict and isinstance(value, dict):
        _, element = get_args(kind)
        return {key: one for key, row in value.items() if (one := _row(row, element)) is not None}
    with_fields = _with_fields(kind)
    if isinstance(value, dict) and with_fields is not None:
        return salvaged(value, with_fields)
    return msgspec.convert(value, kind)


def _row(value: Any, kind: Any) -> Any:
    """The same, also for an array that stands for an object; None if it is not well formed."""
    with_fields = _with_fields(kind)
    if isinstance(value, list) and with_fields is not None:
        value = dict(zip(_fields(with_fields), value, strict=False))
    try:
        return _part(value, kind)
    except _MALFORMED:
        return None


def _with_fields(kind: Any) -> Any:
    """The structure `kind`, or the one in `kind` beside None; None for any other type."""
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    classes = (one for one in kinds if isinstance(one, type))
    return next((one for one in classes if is_dataclass(one) or issubclass(one, msgspec.Struct)), None)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The types of a structure's fields, in the order of an array that stands for it."""
    return get_type_hints(kind, include_extras=True)


Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""So that sums over many stay exact."""

Moment = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]

LineNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


# A text that the head cuts off is one token too: looking for its end from each quote inside takes squared time.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\[\s\S])*)(?:"(\s*:)?|\\?\Z)|[\[\]{}]')


def with_depth(text: bytes, at: int = 0) -> Iterator[tuple[re.Match[bytes], int]]:
    """The texts and brackets from `at` on, and how many brackets are open behind each.

    Group 1 is what a text holds; group 2 is there where it is a key.
    """
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in b"{[":
            depth += 1
        elif token[0] in b"}]":
            depth -= 1
        yield token, depth
