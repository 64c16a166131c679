"""What DeepScope's own scope events stand for: the file's table, or the event's name where the table fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deepscope.trace.model import Int32, Int64, Kind, Scope
from deepscope.trace.names import parse_frame

__all__ = ["resolve_scopes"]


def resolve_scopes(
    deepscope: object, kind: Any, scope_argument: Int64, name: Int32, strings: list[str]
) -> tuple[list[Scope], Int32]:
    """The scopes of a trace and, for each event, an index into them (-1: no scope event); docs/trace-format.md.

    A row of the table that is not as the format says is not believed: the event's own name is parsed in its place.
    """
    scopes, table = _read_table(deepscope)
    column = np.full(len(kind), -1, np.int32)
    rows = np.flatnonzero((kind == Kind.LINE_SCOPE) | (kind == Kind.MODULE_SCOPE))
    if not len(rows):
        return scopes, column
    by_name: dict[tuple[int, int], int] = {}
    keys = np.stack([kind[rows].astype(np.int64), scope_argument[rows], name[rows].astype(np.int64)], axis=1)
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    resolved = []
    for event_kind, argument, event_name in unique.tolist():
        index = table.get((event_kind, argument), -1)
        if index < 0:
            index = by_name.setdefault((event_kind, event_name), len(scopes))
            if index == len(scopes):
                scopes.append(_from_name(event_kind, strings[event_name]))
        resolved.append(index)
    column[rows] = np.array(resolved, np.int32)[inverse.reshape(-1)]
    return scopes, column


def _read_table(deepscope: object) -> tuple[list[Scope], dict[tuple[int, int], int]]:
    """The good rows, and (kind, number in the file's table) → index into them."""
    if not isinstance(deepscope, dict):
        return [], {}
    files = deepscope.get("files")
    rows = deepscope.get("scopes")
    paths = [f.get("path") if isinstance(f, dict) else None for f in files] if isinstance(files, list) else []
    lowered = _read_lowered(deepscope.get("lines"))
    scopes: list[Scope] = []
    table: dict[tuple[int, int], int] = {}
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        if (scope := _from_row(row, paths)) is not None:
            kind = Kind.MODULE_SCOPE if row[0] == 1 else Kind.LINE_SCOPE
            table[int(kind), number] = len(scopes)
            scopes.append(replace(scope, lowered=lowered.get(number, "")))
    return scopes, table


def _read_lowered(lines: object) -> dict[int, str]:
    """Number in the file's table → what the scope stands for."""
    rows = lines.get("lowered") if isinstance(lines, dict) else None
    pairs = [row for row in rows if isinstance(row, list) and len(row) == 2] if isinstance(rows, list) else []
    return {row[0]: row[1] for row in pairs if type(row[0]) is int and row[1] in ("loop", "function")}


def _from_row(row: object, paths: list[object]) -> Scope | None:
    if not isinstance(row, list) or len(row) < 4:
        return None
    kind, file, line, name, first_line, path, python_module = (*row, *(0, "", "")[len(row) - 4 :])[:7]
    if type(kind) is not int or kind not in (0, 1) or not all(type(n) is int for n in (file, line, first_line)):
        return None
    if not all(isinstance(word, str) for word in (name, path, python_module)) or not 0 <= line < 2**31:
        return None
    recorded = paths[file] if 0 <= file < len(paths) else ""
    if not isinstance(recorded, str) or (kind == 0 and (not recorded or line < 1)):
        return None
    return Scope(recorded, line, name, first_line, path, python_module)


def _from_name(kind: int, name: str) -> Scope:
    if kind == Kind.MODULE_SCOPE:
        return Scope("", 0, name.removeprefix("nn.Module: "))
    frame = parse_frame(name)
    return Scope(frame.path, frame.line, frame.function) if frame else Scope("", 0, name)
