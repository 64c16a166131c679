"""The times of what the recorder knows of the memory: of the spans by which it marked them in torch's recording."""

from __future__ import annotations

import numpy as np

from deepscope.trace.format.held_memory import MemoryAccount, OutOfMemory, Release, Survey
from deepscope.trace.format.span_names import parse_memory
from deepscope.trace.model import Trace


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
