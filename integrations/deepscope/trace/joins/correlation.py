"""Which call launched which device work, by every recorder's way of saying so."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_values, first_with, pick
from deepscope.trace.joins.nesting import open_around
from deepscope.trace.kinds import Kind
from deepscope.trace.model import QUEUE_OFFSET, Events, Int64, Trace
from deepscope.trace.names import is_launch


def launches(trace: Trace) -> Int64:
    """Index of the event on the CPU that launched each event's device work; -1 for none and for CPU events. Shape (n,).

    It is the runtime call with the same correlation. Several calls may have it: then one that launches or copies, and
    the latest before the work. Many kernels of a replayed graph share one call. Ascend's work leads through CANN's call
    and the queue's `Dequeue` to the `Enqueue` on the operator's thread. If the call is not in the file, it is the
    *operator* with the same `External id`, where the trace has such ids (`external_ids_name_operators`).
    """
    events = trace.events
    device = np.flatnonzero((events.kind >= Kind.KERNEL) & (events.kind <= Kind.DEVICE_SPAN))
    result = np.full(len(events), -1, np.int64)
    result[device] = _calls_of(trace, device)
    lost = device[(result[device] < 0) & (events.kind[device] != Kind.DEVICE_SPAN)]
    if len(lost) and external_ids_name_operators(events):
        result[lost] = _operators_of(events, lost)
    return _through_queue(events, result)


def external_ids_name_operators(events: Events) -> bool:
    """Whether the `External id` of device work is an operator's; in older traces it repeats the correlation."""
    device = (events.kind >= Kind.KERNEL) & (events.kind <= Kind.MEMSET)
    both = device & (events.correlation >= 0) & (events.external_id >= 0)
    if not both.any():
        return bool((device & (events.external_id >= 0)).any())
    return bool((events.correlation[both] != events.external_id[both]).mean() > 0.5)


def _calls_of(trace: Trace, device: Int64) -> Int64:
    """The runtime call of each device event, by correlation."""
    events = trace.events
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    index: dict[object, int] = {}
    process = np.array([index.setdefault(thread.pid, len(index)) for thread in trace.threads], np.int64)
    caller = process[events.thread[calls]]
    callers = distinct_values(caller).tolist()
    if len(callers) < 2:
        return _joined(trace, device, calls)
    # Several ranks in one file: each numbers its correlations from the start.
    found = np.full(len(device), -1, np.int64)
    pids = list(index)
    device_process = process[events.thread[device]]
    for one in distinct_values(device_process).tolist():
        rows = np.flatnonzero(device_process == one)
        choices = [
            _Choice(_joined(trace, device[rows], calls[caller == number]), _alike(pids[one], pids[number]))
            for number in callers
        ]
        found[rows] = _most_likely(events, device[rows], choices)
    return found


class _Choice(NamedTuple):
    """The calls of one process for the work of one device, and how alike the names of the two are."""

    calls: Int64
    alike: int


def _alike(one: object, other: object) -> int:
    """How long a prefix two processes' names share: scripts that merge ranks write `[TP00] 4711` and `[TP00] 0`."""
    if not isinstance(one, str) or not isinstance(other, str):
        return 0
    return len(list(takewhile(lambda letters: letters[0] == letters[1], zip(one, other, strict=False))))


def _most_likely(events: Events, device: Int64, choices: list[_Choice]) -> Int64:
    """The calls for the work of one device, out of the calls of several processes.

    Prefers the process with the longest shared name prefix, then the one with most calls before their work, then the
    one with the shortest delays. Work without a call in one process looks in the next.
    """

    def fits(calls: Int64) -> npt.NDArray[np.bool_]:
        return (calls >= 0) & (events.start_ns[calls] <= events.start_ns[device])

    def score(choice: _Choice) -> tuple[int, int, int]:
        rows = fits(choice.calls)
        delay_ns = int((events.start_ns[device] - events.start_ns[choice.calls])[rows].sum())
        return choice.alike, int(rows.sum()), -delay_ns

    found = np.full(len(device), -1, np.int64)
    ordered = [choice.calls for choice in sorted(choices, key=score, reverse=True)]
    for calls in ordered:
        found = np.where((found < 0) & fits(calls), calls, found)
    for calls in ordered:
        found = np.where(found < 0, calls, found)
    return found


def _joined(trace: Trace, device: Int64, calls: Int64) -> Int64:
    """The call with the correlation of each device event, -1 for none."""
    events = trace.events
    found = np.full(len(device), -1, np.int64)
    if not len(calls):
        return found
    hands_over = trace.named(calls, is_launch)
    order = np.lexsort((events.start_ns[calls], hands_over, events.correlation[calls]))
    calls = calls[order]
    numbers = events.correlation[calls]
    wanted = events.correlation[device]
    low, high = np.searchsorted(numbers, wanted, "left"), np.searchsorted(numbers, wanted, "right")
    known = (wanted >= 0) & (low < high)
    found[known] = calls[high[known] - 1]
    several = np.flatnonzero(known & (high - low > 1))
    found[several] = calls[
        _best(events.start_ns[calls], hands_over[order], low[several], high[several], events.start_ns[device[several]])
    ]
    return found


def _best(start_ns: Int64, hands_over: npt.NDArray[np.bool_], low: Int64, high: Int64, work_ns: Int64) -> Int64:
    """The best call in each range [low, high) of calls sorted by launching and start; positions, shape of `low`.

    Calls that launch go before others. Of those it is the latest before the work, else the first.
    """
    before = np.concatenate(([0], np.cumsum(hands_over)))
    launching = before[high] - before[low]
    low = np.where(launching > 0, high - launching, low)
    # Bisection of all ranges at once.
    left, right = low.copy(), high.copy()
    while (is_open := left < right).any():
        middle = np.minimum((left + right) // 2, len(start_ns) - 1)
        is_before = start_ns[middle] <= work_ns
        left = np.where(is_open & is_before, middle + 1, left)
        right = np.where(is_open & ~is_before, middle, right)
    latest: Int64 = np.maximum(left - 1, low)
    return latest


def _operators_of(events: Events, device: Int64) -> Int64:
    operators = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.external_id >= 0))
    at = first_with(events.external_id[operators], events.external_id[device])
    return pick(operators, at)


def _through_queue(events: Events, call: Int64) -> Int64:
    """From the `Dequeue` around each call to the `Enqueue` that fed it: torch_npu calls CANN on a thread of its own."""
    queued = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= QUEUE_OFFSET))
    work = np.flatnonzero(call >= 0)
    if not len(queued) or not len(work):
        return call
    around = open_around(events, call[work], queued)
    work, dequeue = work[around >= 0], queued[around[around >= 0]]
    queued = queued[np.argsort(events.start_ns[queued], kind="stable")]
    through: Int64 = call.copy()
    through[work] = queued[first_with(events.correlation[queued], events.correlation[dequeue])]
    return through
