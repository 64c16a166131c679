"""Numbers over time: memory, how busy devices are, how much work waits for them, and what the trace counts itself."""

from __future__ import annotations

from collections import Counter as Counts

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Floats
from deepscope.analysis.numbers.memory import MemoryUse
from deepscope.analysis.ownership.attribution import Attribution, OwnedWork
from deepscope.analysis.tables.counters import levels
from deepscope.analysis.tables.memory import device_name
from deepscope.dashboard.page_answer import CounterUnit, unit_named
from deepscope.dashboard.timeline.answers import Change, Counter, CounterWindow
from deepscope.dashboard.timeline.columns import LONGEST, CounterColumns, TimelineColumns
from deepscope.dashboard.timeline.detail_levels import covered_before
from deepscope.printable import clipped
from deepscope.trace.format.counters import TRACKS
from deepscope.trace.model import Int64

MOST_COUNTERS = 64
"""Of those that the trace counts itself; of others' the ones with most samples."""
MOST_OF_A_COUNTER = 8
"""Series of one of DeepScope's counters: a machine has hundreds of cores."""
MOST_POINTS = 6_000
"""So many points at most has a window, all its counters together."""
_LEAST_BINS = 16
_CHANGE_BINS = 256
"""A selection's least and largest utilisation are those of so many stretches of it."""


def counters_of(of: Attribution, memory: MemoryUse, begin: int) -> list[CounterColumns]:
    """All counters of a trace; times from `begin`."""
    own = _recorded(of, begin)
    return [*_utilisation(of.work), *_memory(memory, begin), *_queues(of.work, begin), *own]


def _utilisation(work: OwnedWork) -> list[CounterColumns]:
    if work.metric != "device":
        return []
    nothing = np.zeros(0, np.int64)
    return [
        CounterColumns(f"device {device} busy", "percent", 100.0, device, nothing, nothing.astype(np.float64), place)
        for place, device in enumerate(work.busy)
    ]


def _memory(use: MemoryUse, begin: int) -> list[CounterColumns]:
    found = []
    for one in use.devices:
        name = device_name(one.device_type, one.device_id)
        device = one.device_id if one.device_type else -1
        is_known = one.reserved_bytes >= 0
        for word, rows, value in (
            ("allocated", np.arange(len(is_known)), one.allocated_bytes),
            ("reserved", np.flatnonzero(is_known), one.reserved_bytes),
        ):
            if len(rows):
                found.append(_of_values(f"{name} {word}", "bytes", device, one.ts_ns[rows] - begin, value[rows]))
    return found


def _queues(work: OwnedWork, begin: int) -> list[CounterColumns]:
    """Of each device what was launched and has not ended, where launches are known."""
    found = []
    for device in work.busy if work.metric == "device" else ():
        rows = np.flatnonzero(work.counts & (work.device == device) & (work.node >= 0))
        if not len(rows):
            continue
        launch = work.launch_ns[rows]
        # Clocks of CPU and device may disagree by a little: nothing ends before it is launched.
        end = np.maximum(work.end_ns[rows], launch)
        ts = np.concatenate((launch, end)) - begin
        step = np.repeat([1, -1], len(rows))
        order = np.argsort(ts, kind="stable")  # at one instant launches go first
        ts, value = ts[order], np.cumsum(step[order])
        last = np.flatnonzero(np.append(ts[1:] != ts[:-1], True))
        found.append(_of_values(f"device {device} queue", "count", device, ts[last], value[last]))
    return found


def _recorded(of: Attribution, begin: int) -> list[CounterColumns]:
    """Those of the trace: DeepScope's own first, of each counter some series."""
    found: list[CounterColumns] = []
    recorded = list(levels(of.trace))
    size = Counts(level.counter for level in recorded if level.is_own)
    # So many of each that all counters have a place: eight disks and eight interfaces alone would fill it.
    fits = (most for most in range(MOST_OF_A_COUNTER, 1, -1) if _shown(size, most) <= MOST_COUNTERS)
    most = next(fits, 1)
    of_counter: Counts[str] = Counts()
    for level in recorded:
        if level.is_own:
            of_counter[level.counter] += 1
            if of_counter[level.counter] > most:
                continue
        title = level.counter if level.series in {level.counter, "", "value"} else f"{level.counter}: {level.series}"
        unit = unit_named(TRACKS[level.counter].unit) if level.is_own else "count"
        found.append(_of_values(clipped(title, LONGEST), unit, -1, level.at_ns - begin, level.value))
        if len(found) == MOST_COUNTERS:
            break
    return found


def _shown(size: Counts[str], most: int) -> int:
    return sum(min(one, most) for one in size.values())


def _of_values(title: str, unit: CounterUnit, device: int, at: Int64, value: npt.NDArray[np.generic]) -> CounterColumns:
    values = value.astype(np.float64)
    return CounterColumns(title, unit, float(values.max()), device, at, values)


def counter_head(number: int, counter: CounterColumns) -> Counter:
    """What is said of a counter as a whole."""
    largest = _number(counter.largest)
    return Counter(id=number, title=counter.title, unit=counter.unit, largest=largest, device=counter.device)


def counter_window(columns: TimelineColumns, number: int, edges: Int64) -> CounterWindow:
    """A counter in a window, at most two points for each stretch between two edges."""
    counter = columns.counters[number]
    if counter.busy_of >= 0:
        at, value = edges[:-1], _percent(columns, counter.busy_of, edges)
    else:
        at, value = _largest(counter, edges)
    new = np.append(True, value[1:] != value[:-1])[: len(value)]
    return CounterWindow(id=number, at=at[new].tolist(), value=[_number(one) for one in value[new].tolist()])


def edges_of(begin: int, end: int, bins: int) -> Int64:
    """The ends of so many equal stretches of a window, none of them shorter than a nanosecond."""
    bins = min(bins, end - begin)
    # In Python's own numbers, since a year in nanoseconds times a thousand is more than 64 bits hold.
    return np.array([begin + (end - begin) * one // bins for one in range(bins + 1)], np.int64)


def bins_for(counters: int, pixels: int) -> int:
    """Into how many stretches a window is divided for so many counters."""
    return max(min(pixels, MOST_POINTS // (2 * max(counters, 1))), _LEAST_BINS)


def _percent(columns: TimelineColumns, device: int, edges: Int64) -> Floats:
    """How busy a device is between the edges; shape (bins,)."""
    covered = np.diff(covered_before(columns.device_busy, device, edges))
    return np.asarray(np.round(100 * covered / np.maximum(np.diff(edges), 1), 2))


def _largest(counter: CounterColumns, edges: Int64) -> tuple[Int64, Floats]:
    """The largest value in each stretch in which it changes, and what it is from the next one on."""
    at, value = counter.at, counter.value
    bound = np.searchsorted(at, edges)
    first, last = bound[:-1], bound[1:]
    changes = np.flatnonzero(last > first)
    times, values = [], []
    if first[0] > 0:  # what it was before the window
        times.append(edges[:1])
        values.append(value[first[0] - 1 : first[0]])
    if len(changes):
        most = np.maximum.reduceat(value[first[0] : last[-1]], first[changes] - first[0])
        # What it was on entering the stretch counts there, too, unless it changes at once.
        entered = np.maximum(first[changes] - 1, 0)
        carried = (first[changes] > 0) & (at[first[changes]] > edges[changes])
        most = np.where(carried, np.maximum(most, value[entered]), most)
        times += [np.where(carried, edges[changes], at[first[changes]]), edges[changes + 1]]
        values += [most, value[last[changes] - 1]]
    if not times:
        return edges[:0], np.zeros(0)
    ts, found = np.concatenate(times), np.concatenate(values)
    # A stretch that begins where another ends has the last word.
    rank = np.repeat([0, 2, 1], [len(times[0]) if len(times) % 2 else 0, len(changes), len(changes)])
    order = np.lexsort((rank, ts))
    ts, found = ts[order], found[order]
    keep = np.append(ts[1:] != ts[:-1], True) & (ts < edges[-1])
    return ts[keep], found[keep]


def change_in(columns: TimelineColumns, number: int, begin: int, end: int) -> Change | None:
    """What a counter does between two instants; None where it has no value by then."""
    counter = columns.counters[number]
    if counter.busy_of >= 0:
        edges = edges_of(begin, end, _CHANGE_BINS)
        percent = _percent(columns, counter.busy_of, edges)
        whole = float(_percent(columns, counter.busy_of, edges[[0, -1]])[0])
        return _change(number, percent, whole)
    low, high = np.searchsorted(counter.at, [begin, end]).tolist()
    from_before = low > 0 and (low == high or counter.at[low] > begin)
    value = counter.value[low - from_before : high]
    if not len(value):
        return None
    at = np.maximum(counter.at[low - from_before : high], begin)
    width = np.diff(np.append(at, end))
    return _change(number, value, float((value * (width / max(int(width.sum()), 1))).sum()))


def _change(number: int, value: Floats, mean: float) -> Change:
    return Change(
        counter=number,
        first=_number(value[0]),
        last=_number(value[-1]),
        least=_number(value.min()),
        largest=_number(value.max()),
        mean=_number(mean),
    )


def _number(value: float) -> float:
    """As JSON says it best: whole numbers without a fraction."""
    return int(value) if float(value).is_integer() and abs(value) < 1 << 53 else float(value)
