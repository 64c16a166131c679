"""DS020: compiled code that falls into several graphs, or that is compiled again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.trace.kinds import Kind
from deepscope.trace.names import is_cache_lookup, is_compiled_region

_BROKEN = "the graph breaks here: what follows is a graph of its own, and no kernel is fused across"
_RECOMPILED = "the function is compiled again within the recorded steps, since its inputs are not like those before"
_RECOMPILED_BEFORE = "the function was compiled again and again before the recorded steps, since its inputs differ"
_AGAIN = 2
"""So often; once is the usual way to sizes that may differ."""
_KEEP_WHOLE = (
    "Keep the graph whole: what the reason names belongs outside the compiled function, or in tensor operations."
)
_KEEP_STILL = (
    "Give it inputs of the same kind: padded shapes, `mark_dynamic` or `dynamic=True`, tensors in place of numbers."
)


@dataclass(slots=True)
class _CompiledLine:
    """What is known of one line."""

    breaks: list[str] = field(default_factory=list)
    """Reasons."""
    recompilations: list[str] = field(default_factory=list)
    compiling_ns: int = 0
    earlier: list[str] = field(default_factory=list)
    earlier_ns: int = 0

    @property
    def was_recompiled(self) -> bool:
        """Before the window, oftener than any function may be."""
        return len(self.earlier) >= _AGAIN


def _find(facts: Facts) -> Iterator[Finding]:
    lookups, lookup_ns = _lookups(facts)
    if not lookups:
        return
    runs = facts.analysis.columns["calls"]
    for line, place in _places(facts).items():
        if not (place.breaks or place.recompilations or place.was_recompiled):
            continue
        times = int(runs[line]) if place.breaks else 0
        evidence: Evidence = {}
        if place.breaks:
            evidence |= {"graph_breaks": len(place.breaks), "reason": place.breaks[0]}
            evidence |= {"times": times} if times else {}
        if place.recompilations:
            evidence |= {"recompilations": len(place.recompilations), "compiling_ns": place.compiling_ns}
            evidence |= {"recompiled_because": place.recompilations[-1]}
        if place.was_recompiled:
            evidence |= {"earlier_recompilations": len(place.earlier), "earlier_compiling_ns": place.earlier_ns}
            evidence.setdefault("recompiled_because", place.earlier[-1])
        yield RULE.finding(
            facts,
            location=line,
            message="; ".join(text for text, told in _texts(place) if told),
            evidence=evidence,
            saving_ns=place.compiling_ns + min(times, lookups) * (lookup_ns // lookups),
            remedy=" ".join(
                ([_KEEP_WHOLE] if place.breaks else [])
                + ([_KEEP_STILL] if place.recompilations or place.was_recompiled else [])
            ),
        )


def _texts(place: _CompiledLine) -> tuple[tuple[str, bool], ...]:
    return (
        (_BROKEN, bool(place.breaks)),
        (_RECOMPILED, bool(place.recompilations)),
        (_RECOMPILED_BEFORE, place.was_recompiled and not place.recompilations),
    )


def _places(facts: Facts) -> dict[int, _CompiledLine]:
    """The user's lines (locations) at which graphs broke or that begin functions which were recompiled."""
    code = facts.trace.header.compiled
    index = {(one.file, one.line): i for i, one in enumerate(facts.locations)}
    found: dict[int, _CompiledLine] = {}

    def at(place: int) -> _CompiledLine | None:
        line = index.get(_users_line(facts, place), -1)
        return found.setdefault(line, _CompiledLine()) if line >= 0 else None

    for broken in code.breaks:
        if (here := at(broken.place)) is not None:
            here.breaks.append(broken.reason)
    for again in code.recompilations if facts.analysis.extent.spans is None else ():  # in which step, nobody knows
        if (here := at(again.place)) is None:
            continue
        if again.earlier:
            here.earlier.append(again.reason)
            here.earlier_ns += again.duration_ns
        else:
            here.recompilations.append(again.reason)
            here.compiling_ns += again.duration_ns
    return found


def _users_line(facts: Facts, place: int) -> tuple[str, int]:
    """File and line of the innermost place of the user's in a stack; ("", 0) where it has none."""
    header = facts.trace.header
    places = header.compiled.places
    while 0 <= place < len(places):
        row = places[place]
        if row is not None and not row.library:
            return header.path_of(row.file), row.line
        place = row.caller if row is not None and row.caller < place else -1
    return "", 0


def _lookups(facts: Facts) -> tuple[int, int]:
    """How often compiled code was entered, and how long dynamo took to find it."""
    events = facts.trace.events
    spans = of_kind(facts.trace, Kind.OPERATOR, Kind.ANNOTATION)
    inside = facts.analysis.extent.holds(events.start_ns)
    regions = inside & named(facts.trace, spans, is_compiled_region)
    lookups = inside & named(facts.trace, spans, is_cache_lookup)
    return int(np.count_nonzero(regions)), int(events.duration_ns[lookups].sum())


RULE = Rule("DS020", "Graph breaks and recompilations", _find)
