"""What the recorder's own spans in torch's export mark: the window's end, the runs of lines, moments, the host's clock.

The recorder marks each step, or a block without steps, and ends the last mark before it does anything else: what torch
closes late, and spans that end behind it, end there.

torch converts the processor's counter to Unix time once a recording (2.13: to within the error of the comparison), and
writes whole microseconds before 2.4. Spans whose starts lie between two readings of the host's clock tell how torch's
stands to it.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from deepscope.trace.arrays import distinct_values
from deepscope.trace.format.header import Clock
from deepscope.trace.format.process_tables import MemoryAccount, OutOfMemory, Release, Survey
from deepscope.trace.format.span_names import MOMENT_NAME, clock_name, is_late, parse_memory, parse_name
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace

_WORK = (Kind.ANNOTATION, Kind.PYTHON_FUNCTION, Kind.LINE_SCOPE, Kind.MODULE_SCOPE, Kind.OPERATOR)


def window_end_ns(trace: Trace, mark: str) -> int | None:
    """When the last span named `mark` ended, a time of the trace; None where there is none."""
    ends = trace.events.end_ns[_marks(trace, mark)]
    return int(ends.max()) if len(ends) else None


def end_with_window(trace: Trace, mark: str) -> Trace:
    """The trace with no span on a CPU thread beyond the end of the last `mark`.

    What begins there on the thread of the mark is the recorder's and torch's own work; it becomes of kind `OTHER`.
    """
    end_ns = window_end_ns(trace, mark)
    if end_ns is None:
        return trace
    events = trace.events
    begins_later = events.start_ns >= end_ns
    crosses = np.isin(events.kind, _WORK) & ~begins_later & (events.end_ns > end_ns)
    duration = np.where(crosses, end_ns - events.start_ns, events.duration_ns)
    tells = np.array([is_late(name) or name == MOMENT_NAME for name in trace.strings] + [False])
    is_on_thread = np.isin(events.thread, events.thread[_marks(trace, mark)])
    is_recorders = begins_later & is_on_thread & ~tells[events.name] & (events.kind <= Kind.RUNTIME)
    kind = np.where(is_recorders, np.uint8(Kind.OTHER), events.kind)
    scope = np.where(is_recorders, np.int32(-1), events.scope)
    return replace(trace, events=replace(events, duration_ns=duration, kind=kind, scope=scope))


def _marks(trace: Trace, mark: str) -> Int64:
    if mark not in trace.strings:
        return np.zeros(0, np.int64)
    is_mark = trace.events.name == trace.strings.index(mark)
    return np.flatnonzero(is_mark & (trace.events.kind == Kind.ANNOTATION))


def memory_with_times(account: MemoryAccount | None, export: Trace) -> MemoryAccount | None:
    """The account with times in place of the spans' numbers; what was marked where torch did not record is left out."""
    if account is None:
        return None
    times = _times(export)
    failure = account.failure
    return MemoryAccount(
        surveys=[Survey(times[one.at_ns], one.occasion, one.held) for one in account.surveys if one.at_ns in times],
        releases=[Release(times[one.at_ns], *_place(one)) for one in account.releases if one.at_ns in times],
        failure=None if failure is None or failure.at_ns not in times else _at(failure, times[failure.at_ns]),
        cost_ns=account.cost_ns,
        warnings=account.warnings,
    )


def _times(export: Trace) -> dict[int, int]:
    """The start of each span by its number."""
    events = export.events
    number = np.full(len(export.strings), -1, np.int64)
    for index, name in enumerate(export.strings):
        found = parse_memory(name)
        if found is not None:
            number[index] = found
    rows = np.flatnonzero(number[events.name] >= 0)
    return dict(zip(number[events.name[rows]].tolist(), events.start_ns[rows].tolist(), strict=True))


def _place(release: Release) -> tuple[int, int, int]:
    return release.device_type, release.device_id, release.address


def _at(failure: OutOfMemory, at_ns: int) -> OutOfMemory:
    return OutOfMemory(at_ns, failure.error, failure.message, failure.on_cpu)


class LateRuns(NamedTuple):
    """What one late span tells: these scopes, outermost first, all ran from `start_ns` for `duration_ns`."""

    scopes: tuple[int, ...]
    start_ns: int
    duration_ns: int


def with_late_runs(trace: Trace, scope_count: int, end_ns: int | None = None) -> tuple[Trace, dict[int, LateRuns]]:
    """The trace with line scopes in place of late spans, and what each span told, by the index of its event.

    A span's own row becomes its outermost run; rows for the runs within that stand behind all others. No run goes on
    after `end_ns`.
    """
    late_names = {index: name for index, name in enumerate(trace.strings) if is_late(name)}
    if not late_names:
        return trace, {}
    is_mark = trace.events.name == (trace.strings.index(MOMENT_NAME) if MOMENT_NAME in trace.strings else -1)
    spans = np.flatnonzero(np.isin(trace.events.name, list(late_names)))
    runs: dict[int, LateRuns] = {}
    for index, moment in zip(spans.tolist(), _last_before(trace.events, spans, np.flatnonzero(is_mark)), strict=True):
        parsed = parse_name(late_names[int(trace.events.name[index])])
        if parsed is not None and moment is not None and all(scope < scope_count for scope in parsed.scopes):
            began = moment - parsed.began_ns
            ended = moment if end_ns is None else max(min(moment, end_ns), began)
            runs[index] = LateRuns(parsed.scopes, began, ended - began)
    # Late spans and marks only tell; they are no operators.
    kind = trace.events.kind.copy()
    kind[is_mark] = kind[spans] = Kind.ANNOTATION
    return replace(trace, events=_with_rows(replace(trace.events, kind=kind), runs)), runs


def _last_before(events: Events, spans: Int64, marks: Int64) -> list[int | None]:
    """When the last of `marks` on the thread of each span began, at or before the span; None for none."""
    found: list[int | None] = [None] * len(spans)
    for thread in distinct_values(events.thread[marks]).tolist():
        times = np.sort(events.start_ns[marks[events.thread[marks] == thread]])
        here = np.flatnonzero(events.thread[spans] == thread)
        last = np.searchsorted(times, events.start_ns[spans[here]], "right") - 1
        for position, at in zip(here.tolist(), last.tolist(), strict=True):
            found[position] = int(times[at]) if at >= 0 else None
    return found


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


ClockReadings = list[tuple[int, int]]
"""For each span the host's clock before it was opened and after, in nanoseconds since the epoch."""

_BASE = "baseTimeNanoseconds"


def compared_clock(readings: ClockReadings, export: Trace) -> Clock | None:
    """What the readings tell of the times in torch's export; None where none of the spans is there."""
    found = [_clock_of(reading, start) for number, reading in enumerate(readings) for start in _starts(export, number)]
    return min(found, key=lambda one: one.error_ns) if found else None


def _starts(export: Trace, number: int) -> list[int]:
    name = clock_name(number)
    if name not in export.strings:
        return []
    rows = np.flatnonzero(export.events.name == export.strings.index(name))[:1]
    return [export.base_ns + int(start) for start in export.events.start_ns[rows]]


def _clock_of(reading: tuple[int, int], start_ns: int) -> Clock:
    """Half of the pair's distance, and what is rounded, is what it may be off."""
    before, after = reading
    rounded = 1_000 if start_ns % 1_000 == 0 else 0
    return Clock(
        offset_ns=(before + after) // 2 - start_ns, error_ns=(after - before + 1) // 2 + rounded, unix_ns=before
    )


def on_host_clock(export: Trace, clock: Clock) -> tuple[Trace, Clock]:
    """The trace with a base that makes Unix time of its times, and what is left to add: nothing."""
    metadata = {**export.metadata, _BASE: export.base_ns + clock.offset_ns}
    moved = replace(export, metadata=metadata, base_ns=metadata[_BASE])
    return moved, Clock(error_ns=clock.error_ns, unix_ns=clock.unix_ns)
