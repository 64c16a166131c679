"""The user's stack at each operator, read off the line scopes that were open on its thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.trace.correlation import backward_partners
from deepscope.trace.model import Int64, Kind, Scope, Trace
from deepscope.trace.nesting import innermost, parents

__all__ = ["BACKWARD_MARK", "Stacks", "stacks_of"]

BACKWARD_MARK = "<backward>"
"""Last frame of a stack that is not the operator's own but that of the forward line it came from."""

_MAX_FRAMES = 64


@dataclass(frozen=True, slots=True)
class Stacks:
    """Texts of call stacks, and which one each event has."""

    texts: list[str]
    """`path(line): function;…`, innermost first."""
    of_event: Int64
    """Index into `texts`, -1 none; shape (events,)."""


def stacks_of(trace: Trace) -> Stacks:
    """The stack of user lines open at the start of each operator.

    An operator of the backward pass whose own thread has no line open gets the stack of the forward operator that its
    node came from, marked with `BACKWARD_MARK`.
    """
    events = trace.events
    lines = np.flatnonzero(events.kind == Kind.LINE_SCOPE)
    operators = np.flatnonzero(events.kind == Kind.OPERATOR)
    interned = _Interned(trace.scopes)
    of_line = interned.of_scopes(trace, lines)
    of_event = np.full(len(events), -1, np.int64)
    around = _open_at(trace, operators, lines)
    of_event[operators] = np.where(around >= 0, of_line[around], -1) if len(lines) else -1
    texts = list(interned.texts)
    lacking = operators[of_event[operators] < 0]
    if len(lacking) and len(lines):
        texts += _borrow(trace, lacking, of_event, texts)
    return Stacks(texts, of_event)


def _open_at(trace: Trace, events: Int64, intervals: Int64) -> Int64:
    """Position in `intervals` of the innermost one that is open when each of `events` starts; -1 for none."""
    start, end, thread = trace.events.start_ns, trace.events.end_ns, trace.events.thread
    return innermost(start[events], thread[events], start[intervals], end[intervals], thread[intervals])


class _Interned:
    """Each distinct stack once, as a chain: the innermost scope on top of another stack."""

    def __init__(self, scopes: list[Scope]) -> None:
        self.texts: list[str] = []
        # The dashboard splits at semicolons, and a file's name may hold one.
        self._frames = [f"{scope.file}({scope.line}): {scope.name}".replace(";", ",") for scope in scopes]
        self._depths: list[int] = []
        self._known: dict[tuple[int, int], int] = {}

    def of_scopes(self, trace: Trace, lines: Int64) -> Int64:
        """The stack that each run of a line stands for; shape (lines,)."""
        events = trace.events
        start, end = events.start_ns[lines], events.end_ns[lines]
        parent = parents(start, end, events.thread[lines])
        order = np.lexsort((-end, start))
        result = [-1] * len(lines)
        for row, above, scope in zip(
            order.tolist(), parent[order].tolist(), events.scope[lines[order]].tolist(), strict=True
        ):
            result[row] = self._on_top(result[above] if above >= 0 else -1, scope)
        return np.array(result, np.int64)

    def _on_top(self, below: int, scope: int) -> int:
        """The stack of `scope` above the stack `below` (-1 for the bottom)."""
        stack = self._known.get((below, scope))
        if stack is None:
            stack = self._known[below, scope] = len(self.texts)
            depth = self._depths[below] + 1 if below >= 0 else 1
            text = self._frames[scope]
            if below >= 0:
                outer = self.texts[below]
                text = f"{text};{outer if depth <= _MAX_FRAMES else outer.rpartition(';')[0]}"
            self.texts.append(text)
            self._depths.append(min(depth, _MAX_FRAMES))
        return stack


def _borrow(trace: Trace, lacking: Int64, of_event: Int64, texts: list[str]) -> list[str]:
    """Give operators below a backward root the stack of its forward partner; returns the texts to be added."""
    roots, partners = backward_partners(trace)
    if not len(roots):
        return []
    root = _open_at(trace, lacking, roots)
    rows = np.flatnonzero((root >= 0) & (partners[root] >= 0))
    source = of_event[partners[root[rows]]]
    rows, source = rows[source >= 0], source[source >= 0]
    distinct, inverse = np.unique(source, return_inverse=True)
    of_event[lacking[rows]] = len(texts) + inverse
    return [f"{texts[stack]};{BACKWARD_MARK}" for stack in distinct.tolist()]
