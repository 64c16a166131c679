"""Each wait of the training thread for the device, with what made it wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to
from deepscope.analysis.array_ops.selection import Mask, distinct
from deepscope.analysis.numbers.work import copy_direction
from deepscope.analysis.ownership.owners import Operators
from deepscope.analysis.ownership.work import Work
from deepscope.trace.arrays import distinct_places, pick
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
