"""Why the CPU waited for the device, and why the device was idle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask, by_line, distinct
from deepscope.analysis.numbers.added_by_recording import Added
from deepscope.analysis.numbers.phases import PhaseTimeline
from deepscope.analysis.numbers.work import copy_direction
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.owners import Operators, Work
from deepscope.trace.arrays import distinct_places, nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


class WaitCause(IntEnum):
    """What a program did that waits."""

    VALUE = 1
    """A number was read from the device: `.item()`, `float()`, `bool()`, `print`."""
    SHAPE = 2
    """A result's shape depends on values: boolean indexing, `nonzero`, `unique`."""
    COPY_OUT = 3
    """A tensor was brought to the host: `.cpu()`, `.numpy()`, `.tolist()`."""
    COPY_IN = 4
    """A tensor was taken to the device by a copy that blocks."""
    EXPLICIT = 5
    """The program asked to wait: `torch.cuda.synchronize()`."""
    OTHER = 6
    CHECK = 7
    """Autograd's engine looks for NaN: anomaly detection is on."""
    SEARCH = 8
    """A convolution tries out algorithms: `cudnn.benchmark` is on."""
    CLIPPING = 9
    """The norm of the gradients is read as they are clipped."""


_BY_OPERATOR = {
    "aten::_local_scalar_dense": WaitCause.VALUE,
    "aten::item": WaitCause.VALUE,
    "aten::is_nonzero": WaitCause.VALUE,
    "aten::equal": WaitCause.VALUE,
    "aten::nonzero": WaitCause.SHAPE,
    "aten::masked_select": WaitCause.SHAPE,
    "aten::_unique2": WaitCause.SHAPE,
    "aten::unique_dim": WaitCause.SHAPE,
    "aten::unique_consecutive": WaitCause.SHAPE,
    "aten::repeat_interleave": WaitCause.SHAPE,
    "aten::bincount": WaitCause.SHAPE,
}
_COPY = "aten::copy_"


@dataclass(frozen=True, slots=True)
class CausedWaits:
    """Waits, none within another, in order of time; arrays of shape (k,)."""

    start: Int64
    end: Int64
    location: Int64
    """Index of the line, -1 for none."""
    cause: Int64
    """A `WaitCause`."""

    def __len__(self) -> int:
        return len(self.start)

    def choose(self, rows: Mask) -> CausedWaits:
        """The waits of some rows; `rows` has shape (k,)."""
        return CausedWaits(self.start[rows], self.end[rows], self.location[rows], self.cause[rows])


def caused_waits(
    trace: Trace,
    operators: Operators,
    work: Work,
    waits: Int64,
    location: Int64,
    *,
    parent: Int64,
    within: Mapping[WaitCause, Int64],
) -> CausedWaits:
    """One thread's waits (events) with their causes.

    Args:
        trace: the trace.
        operators: its operators.
        work: its work.
        waits: the events in which the thread waits.
        location: the line that owns each event, shape (n,).
        parent: the event that encloses each one on its thread, shape (n,).
        within: causes, and the events in which waits have them; in those of `CLIPPING` only waits for a value do.
    """
    events = trace.events
    found = _outermost(events.start_ns[waits], events.end_ns[waits], waits)
    cause, copy = _climb(trace, operators, found)
    if (copy >= 0).any():
        inward = _copies_inward(trace, operators, work)
        of_copy = np.where(np.isin(copy, inward), WaitCause.COPY_IN, WaitCause.COPY_OUT)
        cause = np.where((cause == WaitCause.OTHER) & (copy >= 0), of_copy, cause)
    for meant, around in within.items():
        if len(around):
            chosen = np.zeros(len(events), np.bool_)
            chosen[around] = True
            has = nearest_to(found, parent, chosen) >= 0
            cause = np.where(has & ((meant != WaitCause.CLIPPING) | (cause == WaitCause.VALUE)), meant, cause)
    # A copy into memory that is not pinned waits in its own call, and in one behind it once more.
    goes_on = np.append(False, (copy[1:] == copy[:-1]) & (copy[1:] >= 0))[: len(found)]
    ends = np.append(~goes_on[1:], True)[: len(found)]
    first = found[~goes_on]
    return CausedWaits(events.start_ns[first], events.end_ns[found[ends]], location[first], cause[~goes_on])


def _outermost(start: Int64, end: Int64, events: Int64) -> Int64:
    """Events of one thread in order of time, without those inside another (a stream's wait inside `.item()`)."""
    order = np.lexsort((-end, start))
    end = end[order]
    inside = (
        np.concatenate(([False], end[1:] <= np.maximum.accumulate(end)[:-1])) if len(end) else np.zeros(0, np.bool_)
    )
    return np.asarray(events[order[~inside]])


def _copies_inward(trace: Trace, operators: Operators, work: Work) -> Int64:
    """The `aten::copy_`s that copy from the host to the device (positions among the operators)."""
    rows = np.flatnonzero(work.kind == Kind.MEMCPY)
    names = trace.events.name[work.event[rows]]
    inward = np.zeros(len(trace.strings), np.bool_)
    for name in distinct(names, len(trace.strings)):
        inward[name] = copy_direction(trace.strings[name]) == "h2d"
    _, copy = _climb(trace, operators, work.node[rows[inward[names]]])
    return copy[copy >= 0]


def _climb(trace: Trace, operators: Operators, nodes: Int64) -> tuple[Int64, Int64]:
    """The way up from CPU events (-1 for none) through the operators around them.

    Returns the innermost known cause, and the innermost `aten::copy_` (position among the operators, -1 for none), both
    of shape (k,).
    """
    at = pick(operators.around, nodes)
    cause = np.where(at < 0, WaitCause.EXPLICIT, WaitCause.OTHER).astype(np.int64)
    copy = np.full(len(nodes), -1, np.int64)
    while (at >= 0).any():
        of_name, is_copy = _known(trace, operators.nodes, at)
        cause = np.where((cause == WaitCause.OTHER) & (of_name > 0), of_name, cause)
        copy = np.where((copy < 0) & is_copy, at, copy)
        at = pick(operators.caller, at)
    return cause, copy


def _known(trace: Trace, operators: Int64, at: Int64) -> tuple[Int64, Mask]:
    """What operators (positions, -1 for none) are by their names: a cause or 0, and whether `aten::copy_`."""
    texts, inverse = distinct_places(trace.events.name[operators[at]])
    words = [trace.strings[text] for text in texts.tolist()]
    causes = np.array([_BY_OPERATOR.get(word, 0) for word in words], np.int64)
    copies = np.array([word == _COPY for word in words], np.bool_)
    return np.where(at < 0, 0, causes[inverse]), (at >= 0) & copies[inverse]


LAUNCH_GAP_NS = 100_000
"""In a longer gap the CPU did something else than launch."""
TURNAROUND_NS = 3_000
"""A device itself takes so long between two kernels."""
QUEUED_NS = 20_000
"""Work that was launched so long before the device fell idle did not wait for the CPU."""


@dataclass(frozen=True, slots=True)
class IdleGaps:
    """Idle time by cause, summed over the devices."""

    loader: list[Intervals]
    """By device: while the training thread was loading data."""
    synced: Int64
    """By line, shape (lines + 1,), the last place for none: after a wait, and no longer than the wait took. Without the
    wait the CPU would have been so far ahead."""
    copied: Int64
    """By line: after a wait for a copy to the device."""
    checked: Int64
    """By line: after a wait of autograd's that looks for NaN."""
    clipped: Int64
    """By line: after a wait for the norm of the gradients, as they are clipped."""
    clip_launch: Int64
    """By line: what is `launch` for other kernels, before those that clip gradients one by one."""
    launch: Int64
    """By line: short gaps before kernels that the CPU launched late."""
    rest: list[Intervals]
    """By device: long gaps without any of these causes."""


def find_gaps(
    work: OwnedWork,
    phases: PhaseTimeline,
    within: Intervals,
    waits: CausedWaits,
    lines: int,
    *,
    added: Added,
    searching: Intervals,
    clipping: Mask,
) -> IdleGaps:
    """The idle time within a window by cause.

    Args:
        work: of the trace.
        phases: of the trace.
        within: the window.
        waits: those of the training thread.
        lines: how many there are.
        added: what recording added, which is nobody's and in none of these.
        searching: when convolutions try out algorithms; what is idle meanwhile is theirs and in none of these.
        clipping: which work clips gradients one by one, shape (w,).
    """
    unrecorded = added.idle.complement(within)
    data = phases.spans_of("data")
    loader, rest = [], []
    after_wait = np.zeros((max(WaitCause) + 1, lines + 1), np.int64)
    launch, clip_launch = np.zeros((2, lines + 1), np.int64)
    for device, working in work.busy.items():
        free = working.complement(searching.complement(within) if len(searching.start) else within)
        loader.append(free.intersection(data).intersection(unrecorded))
        pieces = data.complement(free) if len(data.start) else free
        taken, line, cause = _explained_by_waits(pieces, waits, added)
        after = pieces.start + taken
        np.add.at(after_wait, (np.maximum(cause, 0), line), unrecorded.overlap_ns(pieces.start, after))
        is_short = pieces.end - pieces.start < LAUNCH_GAP_NS
        ended_by = _launched_late(work, device, pieces)
        left = unrecorded.overlap_ns(after, pieces.end)
        counted = is_short & (ended_by >= 0) & (left >= TURNAROUND_NS)
        clips = counted & np.append(clipping, False)[ended_by]
        clip_launch += by_line(work.location[ended_by[clips]], lines, left[clips])
        counted &= ~clips
        launch += by_line(work.location[ended_by[counted]], lines, left[counted])
        # Long gaps go to the line that the CPU was on.
        rest.append(union(after[~is_short], pieces.end[~is_short]).intersection(unrecorded))
    copied, checked, clipped = after_wait[[WaitCause.COPY_IN, WaitCause.CHECK, WaitCause.CLIPPING]]
    synced = after_wait.sum(axis=0) - copied - checked - clipped
    return IdleGaps(loader, synced, copied, checked, clipped, clip_launch, launch, rest)


def _explained_by_waits(pieces: Intervals, waits: CausedWaits, added: Added) -> tuple[Int64, Int64, Int64]:
    """How much of each piece's front a wait that ends in it explains, and that wait's line and cause; shape (k,).

    The CPU would have waited longer for what recording took it while the device worked.
    """
    last = np.searchsorted(waits.end, pieces.end, side="right") - 1
    hit = (last >= 0) & (pick(waits.end, last) > pieces.start)
    since = np.concatenate((pieces.start[:1], pieces.end[:-1]))
    longer = added.busy.overlap_ns(since, np.maximum(pick(waits.start, last), since))
    waited = np.where(hit, pick(waits.end - waits.start, last) + longer, 0)
    return np.minimum(waited, pieces.end - pieces.start), pick(waits.location, last), pick(waits.cause, last)


def _launched_late(work: Work, device: int, pieces: Intervals) -> Int64:
    """The work that ended each idle piece, if it was launched late, else -1; shape (k,)."""
    rows = np.flatnonzero(work.device == device)
    rows = rows[np.argsort(work.start_ns[rows], kind="stable")]
    found = np.searchsorted(work.start_ns[rows], pieces.end)
    ends_with = rows[np.minimum(found, len(rows) - 1)]
    late = work.launch_ns[ends_with] + QUEUED_NS >= pieces.start
    return np.where(late & (work.start_ns[ends_with] == pieces.end), ends_with, -1)
