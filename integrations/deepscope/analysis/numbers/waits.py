"""Where the CPU waited for the device (overlaps on one thread count once), and for queues that were full."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.extent import Extent
from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.work import Work
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace
from deepscope.trace.names import is_sync, is_sync_operator

_INTO_PAGEABLE = re.compile(r"Memcpy DtoH \(Device -> Pageable\)")
"""Such a copy is there when its call returns, asynchronous by name or not (CUDA's "API synchronization behavior")."""


def find_waits(trace: Trace, work: Work) -> Int64:
    """The events (ascending indexes, shape (k,)) in which a CPU thread waits for the device.

    In a trace without device work an operator such as `.item()` waits for nothing.
    """
    found = named(trace, of_kind(trace, Kind.RUNTIME), is_sync)
    if work.metric == "device":
        found |= named(trace, of_kind(trace, Kind.OPERATOR), is_sync_operator)
        copies = named(trace, of_kind(trace, Kind.MEMCPY), _INTO_PAGEABLE.fullmatch)
        calls = work.node[copies[work.event]]
        calls = calls[calls >= 0]
        found[calls[trace.events.kind[calls] == Kind.RUNTIME]] = True
    return np.flatnonzero(found)


def wait_by_line(events: Events, waits: Int64, location: Int64, lines: int, extent: Extent) -> Int64:
    """Nanoseconds waited by line; shape (lines + 1,), the last place for waits on no line.

    `waits` come from `find_waits`; `location` is the line that owns each event, -1 for none, shape (n,).
    """
    waits = waits[extent.chooses(waits)]
    group = events.thread[waits].astype(np.int64) * (lines + 1) + location[waits] + 1
    groups, lengths = extent.grouped_union_ns(events.start_ns[waits], events.end_ns[waits], group)
    return by_line(groups % (lines + 1) - 1, lines, lengths)


class Queueing(NamedTuple):
    """Of each piece of work, 0 where its launch is not known; arrays of shape (w,)."""

    launched: Mask
    delay_ns: Int64
    """From the start of the launching call to its own start; clocks that disagree give 0."""
    queued: Int64
    """Work of its device that was launched before its launch and not finished by then."""


def queueing(work: OwnedWork) -> Queueing:
    """The delays and queues of all work of a trace."""
    launched = (work.node >= 0) & (work.metric == "device")
    delay = np.where(launched, np.maximum(work.start_ns - work.launch_ns, 0), 0)
    queued = np.zeros(len(work), np.int64)
    for device in distinct_values(work.device[launched]).tolist():
        rows = np.flatnonzero(launched & (work.device == device))
        at = work.launch_ns[rows]
        whole = work.counts[rows]
        before = np.searchsorted(np.sort(at[whole]), at, side="left")
        # Clocks of CPU and device may disagree by a little: nothing ends before it is launched.
        ends = np.sort(np.maximum(work.end_ns[rows], at)[whole])
        queued[rows] = np.maximum(before - np.searchsorted(ends, at, side="right"), 0)
    return Queueing(launched, delay, queued)
