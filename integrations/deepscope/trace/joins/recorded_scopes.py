"""What DeepScope's own scope events stand for: a row of the file's table, or the event's name where the table fails."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from deepscope.trace.format.header import LOWERED_TO_FUNCTION, LOWERED_TO_LOOP, Header, ScopeRow
from deepscope.trace.format.span_names import MODULE_TITLE
from deepscope.trace.joins.nesting import parents
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Scope, Trace
from deepscope.trace.names import is_cache_lookup, is_compiled_region, parse_frame


def resolve_scopes(
    header: Header, kind: Any, scope_argument: Int64, name: Int32, strings: list[str]
) -> tuple[list[Scope], Int32]:
    """The scopes of a trace and, for each event, an index into them (-1: no scope event); docs/trace-format.md.

    A malformed row of the table is not believed: the event's own name is parsed instead.
    """
    scopes, table = _table(header)
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


def scope_of(row: ScopeRow, header: Header, lowered: str = "") -> Scope:
    """What a row of the table stands for."""
    return Scope(
        header.path_of(row.file),
        row.line,
        row.name,
        row.first_line,
        row.path,
        row.python_module,
        lowered,
        library=row.library and row.kind == 0,
    )


def _table(header: Header) -> tuple[list[Scope], dict[tuple[int, int], int]]:
    """The good rows, and (kind, number in the file's table) → index into them."""
    lowered = {number: way for number, way in header.lines.lowered if way in (LOWERED_TO_LOOP, LOWERED_TO_FUNCTION)}
    parameters = {row.scope: (row.own, row.total) for row in header.parameters}
    scopes: list[Scope] = []
    table: dict[tuple[int, int], int] = {}
    for number, row in enumerate(header.scopes):
        if row is None or (row.kind == 0 and not (row.line and header.path_of(row.file))):
            continue
        kind = Kind.MODULE_SCOPE if row.kind == 1 else Kind.LINE_SCOPE
        table[int(kind), number] = len(scopes)
        scope = scope_of(row, header, lowered.get(number, ""))
        own, whole = parameters.get(number, (0, 0)) if row.kind == 1 else (0, 0)
        scopes.append(replace(scope, own_parameters=own, parameters=whole) if whole else scope)
    return scopes, table


def _from_name(kind: int, name: str) -> Scope:
    if kind == Kind.MODULE_SCOPE:
        return Scope("", 0, name.removeprefix(MODULE_TITLE))
    frame = parse_frame(name)
    return Scope(frame.path, frame.line, frame.function) if frame else Scope("", 0, name)


def end_broken_lines(trace: Trace) -> Trace:
    """The trace without the ends of line scopes that reach into a compiled region but do not hold all of it."""
    regions = _spans(trace, is_compiled_region)
    if not len(regions):
        return trace
    events = trace.events
    rows = np.concatenate([np.flatnonzero(events.kind == Kind.LINE_SCOPE), regions])
    above = parents(events.start_ns[rows], events.end_ns[rows], events.thread[rows]).tolist()
    start, end, thread = (column[rows].tolist() for column in (events.start_ns, events.end_ns, events.thread))
    lookups = _starts_by_thread(trace, _spans(trace, is_cache_lookup))
    duration = events.duration_ns.copy()
    for region in range(len(rows) - len(regions), len(rows)):
        line = above[region]
        while line >= 0 and end[line] < end[region]:
            before = lookups.get(thread[region], [])
            last = bisect_right(before, start[region]) - 1
            begins = before[last] if last >= 0 and before[last] >= start[line] else start[region]
            duration[rows[line]] = min(duration[rows[line]], begins - start[line])
            line = above[line]
    is_line = events.kind == Kind.LINE_SCOPE
    return replace(trace, events=replace(events, duration_ns=np.where(is_line, duration, events.duration_ns)))


def _spans(trace: Trace, is_meant: Callable[[str], bool]) -> Int64:
    """Dynamo's spans with such names (events)."""
    kind = trace.events.kind
    rows = np.flatnonzero((kind == Kind.OPERATOR) | (kind == Kind.ANNOTATION))
    return rows[trace.named(rows, is_meant)]


def _starts_by_thread(trace: Trace, spans: Int64) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for span in spans[np.argsort(trace.events.start_ns[spans], kind="stable")].tolist():
        found.setdefault(int(trace.events.thread[span]), []).append(int(trace.events.start_ns[span]))
    return found
