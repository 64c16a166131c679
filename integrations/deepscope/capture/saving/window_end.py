"""The end of a window: torch closes what is still open when it stops, long after the last step has ended.

The recorder marks each step, or a block without steps, and ends the last mark before it does anything else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deepscope.trace.format.held_memory import MemoryAccount, OutOfMemory, Release, Survey
from deepscope.trace.format.span_names import MOMENT_NAME, is_late, parse_memory
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

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


def with_times(account: MemoryAccount | None, export: Trace) -> MemoryAccount | None:
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
