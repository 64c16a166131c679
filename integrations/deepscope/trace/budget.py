"""Which operators carry their stack, so that the file grows by a third at most over what torch would have written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.trace.model import Events, Int64, Kind
from deepscope.trace.pieces import Pieces
from deepscope.trace.source import Source
from deepscope.trace.splice import compact
from deepscope.trace.stacks import Stacks

__all__ = ["GROWTH", "choose_stacks"]

GROWTH = 1 / 3
"""By how much of torch's own size a trace may grow."""

_MARGIN = 0.97
_SCOPE_BYTES = 135
"""Of a scope's event as it is written, about."""
_KEY_BYTES = len('"Call stack":"",')


def choose_stacks(events: Events, stacks: Stacks, raw: Path) -> Stacks:
    """`stacks` on as many operators as there is room for; those go first that are outermost or launch device work."""
    lengths = np.array([len(text) + _KEY_BYTES for text in stacks.texts], np.int64)
    having = np.flatnonzero(stacks.of_event >= 0)
    if not len(having):
        return stacks
    cost = lengths[stacks.of_event[having]]
    room = _room(events, raw)
    if cost.sum() <= room:
        return stacks
    first = _is_outermost(events)[having] | _launches(events)[having]
    order = np.lexsort((having, ~first))
    kept = having[order[np.cumsum(cost[order]) <= room]]
    of_event = np.full(len(events), -1, np.int64)
    of_event[kept] = stacks.of_event[kept]
    return replace(stacks, of_event=of_event)


def _room(events: Events, raw: Path) -> float:
    """Bytes that stacks may take: what growth allows, and what the spaces between torch's tokens took."""
    scopes = int((events.scope >= 0).sum())
    scope_bytes, compact_ratio = _sample(raw)
    torch_bytes = raw.stat().st_size - scopes * scope_bytes
    allowed = torch_bytes * (1 + GROWTH) * _MARGIN
    return allowed - torch_bytes * compact_ratio - scopes * _SCOPE_BYTES


def _sample(raw: Path) -> tuple[float, float]:
    """Bytes of a scope's event in torch's export, and how much of the other events is left without spaces."""
    piece = next(iter(Pieces(Source(str(raw)), str(raw))), None)
    if piece is None or not piece.events:
        return 240.0, 1.0
    written = _lengths(bytes(piece.text))
    left = _lengths(compact(bytes(piece.text)))
    is_scope = np.array([event.name.startswith("@d") for event in piece.events])
    scope_bytes = float(written[is_scope].mean()) if is_scope.any() else 240.0
    others = written[~is_scope].sum()
    return scope_bytes, float(left[~is_scope].sum() / others) if others else 1.0


def _lengths(array: bytes) -> Int64:
    events = msgspec.json.decode(array, type=list[msgspec.Raw])
    return np.fromiter((len(bytes(event)) + 2 for event in events), np.int64, len(events))


def _is_outermost(events: Events) -> npt.NDArray[np.bool_]:
    """Operators that no other operator of their thread encloses."""
    answer = np.zeros(len(events), np.bool_)
    rows = np.flatnonzero(events.kind == Kind.OPERATOR)
    order = rows[np.lexsort((-events.end_ns[rows], events.start_ns[rows], events.thread[rows]))]
    for thread in np.unique(events.thread[order]).tolist():
        mine = order[events.thread[order] == thread]
        reach = np.maximum.accumulate(events.end_ns[mine])
        answer[mine[0]] = True
        answer[mine[1:]] = events.start_ns[mine[1:]] >= reach[:-1]
    return answer


def _launches(events: Events) -> npt.NDArray[np.bool_]:
    """Operators whose `External id` a call of the device's runtime carries: the innermost ones around launches."""
    launching = events.external_id[(events.kind == Kind.RUNTIME) & (events.correlation >= 0)]
    operators = (events.kind == Kind.OPERATOR) & (events.external_id >= 0)
    answer: npt.NDArray[np.bool_] = operators & np.isin(events.external_id, launching)
    return answer
