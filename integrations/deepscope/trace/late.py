"""Runs of lines that were recorded when they ended: from one late span in torch's export to an event for each run.

The recorder of lines stops opening scopes for a line that runs a great many times; a run of it that may have held an
operator is told of afterwards, by a span that says how long before it the run began (`scope_names.py`).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deepscope.trace.model import Events, Int64, Kind, Trace
from deepscope.trace.scope_names import LATE, parse_name

__all__ = ["LateRuns", "late_event", "with_late_runs"]


class LateRuns(NamedTuple):
    """What one late span tells: these scopes, outermost first, all ran from `start_ns` for `duration_ns`."""

    scopes: tuple[int, ...]
    start_ns: int
    duration_ns: int


class _Place(msgspec.Struct, gc=False):
    pid: msgspec.Raw
    tid: msgspec.Raw


_decode_place = msgspec.json.Decoder(_Place).decode


def with_late_runs(trace: Trace, scope_count: int) -> tuple[Trace, dict[int, LateRuns]]:
    """The trace with line scopes in place of late spans, and what each span told, by the index of its event.

    A span's own row becomes its outermost run; rows for the runs within that stand behind all others.
    """
    told = {index: name for index, name in enumerate(trace.strings) if name.startswith(LATE)}
    spans = np.flatnonzero(np.isin(trace.events.name, list(told))) if told else np.empty(0, np.int64)
    runs: dict[int, LateRuns] = {}
    for index in spans.tolist():
        parsed = parse_name(told[int(trace.events.name[index])])
        if parsed is not None and all(scope < scope_count for scope in parsed.scopes):
            began = int(trace.events.start_ns[index]) - parsed.began_ns
            runs[index] = LateRuns(parsed.scopes, began, parsed.began_ns)
    return (replace(trace, events=_with_rows(trace.events, runs)), runs) if runs else (trace, runs)


def _with_rows(events: Events, runs: dict[int, LateRuns]) -> Events:
    extra = [(index, scope, run) for index, run in runs.items() for scope in run.scopes[1:]]
    source = np.concatenate([np.arange(len(events)), np.array([index for index, _, _ in extra], np.int64)])
    columns: dict[str, Any] = {column.name: getattr(events, column.name)[source] for column in fields(events)}
    rows: Int64 = np.concatenate([np.fromiter(runs, np.int64), np.arange(len(events), len(source))])
    all_runs = [*runs.values(), *(run for _, _, run in extra)]
    columns["start_ns"][rows] = [run.start_ns for run in all_runs]
    columns["duration_ns"][rows] = [run.duration_ns for run in all_runs]
    columns["kind"][rows] = Kind.LINE_SCOPE
    columns["scope"][rows] = [*(run.scopes[0] for run in runs.values()), *(scope for _, scope, _ in extra)]
    return Events(**columns)


def late_event(event: bytes, run: LateRuns, before: bytes, after: bytes) -> bytes:
    """The event for one run; `event` is the late span's, `before` and `after` are from `splice.scope_prefix`."""
    place = _decode_place(event)
    return b'%s%s,"tid":%s,"ts":%s,"dur":%s%s' % (
        before,
        place.pid,
        place.tid,
        _microseconds(run.start_ns),
        _microseconds(run.duration_ns),
        after,
    )


def _microseconds(duration_ns: int) -> bytes:
    return b"%d.%03d" % divmod(duration_ns, 1000)
