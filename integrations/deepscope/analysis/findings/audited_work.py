"""The time that operators took in the window of which the audit says how many were called for nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.records.source_files import base_name
from deepscope.trace.arrays import nearest_to
from deepscope.trace.format.audit import FORMAT, AuditAccount, OperatorUse
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

WORTH = 0.02
"""A place is named if it takes at least this share of the wall time."""
_NAMED = 3
"""Operators that are named."""


def audit_of(facts: Facts) -> AuditAccount:
    """The account of the audit; an empty one where nothing was looked at, or a later version wrote it."""
    found = facts.trace.header.audit
    return found if found is not None and found.format == FORMAT else AuditAccount()


def place_words(facts: Facts, place: int) -> str:
    """`train.py:41`; "" for a place that is not known."""
    places = audit_of(facts).places
    if not 0 <= place < len(places):
        return ""
    return f"{base_name(facts.trace.header.path_of(places[place].file))}:{places[place].line}"


def location_of(facts: Facts, place: int) -> int:
    """Index of the line into `Scopes.locations`; -1 if the trace does not know it."""
    return facts.once(_locations).get(place, -1)


def found_at(
    place: int,
    rule: Rule,
    facts: Facts,
    *,
    takes_ns: int,
    message: str,
    evidence: Evidence,
    remedy: str,
    saving_ns: int | None = None,
    worth: float = WORTH,
    is_bound: bool = False,
) -> Iterator[Finding]:
    """A finding at a place of the audit, if what it found takes enough time there.

    Args:
        place: index into the account's places.
        rule: what was found.
        facts: of the analysis.
        takes_ns: how long it takes in the window.
        message: as for `Rule.finding`.
        evidence: as there; the steps that were looked at are added.
        remedy: as there.
        saving_ns: where that is not all of it.
        worth: of the wall time, so much it has to take.
        is_bound: as for `Rule.finding`.
    """
    if takes_ns >= max(worth * facts.wall_ns, 1):
        yield rule.finding(
            facts,
            location=location_of(facts, place),
            message=message,
            evidence=evidence | {"looked_at_steps": audit_of(facts).steps},
            saving_ns=takes_ns if saving_ns is None else saving_ns,
            remedy=remedy,
            is_bound=is_bound,
        )


def unused_names(uses: Iterable[OperatorUse]) -> str:
    """The operators that nobody needed: `mm, mean`."""
    times: Counter[str] = Counter()
    for use in uses:
        times[use.name.removeprefix("aten::")] += use.unused
    return ", ".join(name for name, count in times.most_common(_NAMED) if count)


def unused_ns(facts: Facts, uses: Iterable[OperatorUse], *, backward: bool, each_ns: int = 0) -> int:
    """What the operators that nobody needed took in the window, on the device if there is one.

    `backward`: whether the uses are of backward work; `each_ns`: what of each piece of work does not count, since it
    takes that for less data, too.

    Of a line's operators of one name those count by their share of the work. What is no operator of the audit
    (autograd's own spans, on the CPU) is shared out as the operators of the line are. A step that something held up
    counts as two usual ones at most.
    """
    times: dict[int, dict[str, float]] = defaultdict(dict)
    for use in uses:
        location = location_of(facts, use.place)
        if location >= 0 and use.times:
            times[location][use.name] = use.share
    attribution, work = facts.attribution, facts.work
    operators = of_kind(facts.trace, Kind.OPERATOR) & (attribution.calls.backward == backward)
    step = attribution.training.steps.of(facts.trace.events.start_ns[work.node])
    saved = 0.0
    for location, shares in times.items():
        mine = facts.analysis.counted & (work.backward == backward) & (work.location == location)
        is_known = named(facts.trace, operators, shares.__contains__)
        above = nearest_to(work.node[mine], attribution.calls.parent, is_known)
        spent_ns = np.maximum(work.duration_ns[mine] - each_ns, 0)
        step_of = step[mine]
        whole_ns = usual_ns(spent_ns, step_of)
        names = np.array([_name(facts, one) if one >= 0 else "" for one in above.tolist()], np.object_)
        matched_ns, unused_ns = 0, 0.0
        for name, share in shares.items():
            here_ns = usual_ns(spent_ns[names == name], step_of[names == name])
            matched_ns += here_ns
            unused_ns += here_ns * share
        saved += whole_ns * unused_ns / matched_ns if matched_ns else 0.0
    return int(saved) // facts.devices


def usual_ns(time_ns: Int64, step: Int64) -> int:
    """The sum of some times, of each step at most twice the (lower) median of the steps."""
    _, place = np.unique(step, return_inverse=True)
    by_step = np.sort(np.bincount(place, weights=time_ns))
    return int(np.minimum(by_step, 2 * by_step[(len(by_step) - 1) // 2]).sum()) if len(by_step) else 0


def both_passes_ns(
    facts: Facts, forward: Iterable[OperatorUse], backward: Iterable[OperatorUse], *, each_ns: int = 0
) -> int:
    """`unused_ns` of forward and of backward work."""
    forward_ns = unused_ns(facts, forward, backward=False, each_ns=each_ns)
    return forward_ns + unused_ns(facts, backward, backward=True, each_ns=each_ns)


def _name(facts: Facts, event: int) -> str:
    return facts.trace.strings[int(facts.trace.events.name[event])]


def _locations(facts: Facts) -> dict[int, int]:
    index: dict[tuple[str, int], int] = {}
    for number, one in enumerate(facts.locations):
        index.setdefault((one.file, one.line), number)
    path_of = facts.trace.header.path_of
    found = ((place, index.get((path_of(one.file), one.line), -1)) for place, one in enumerate(audit_of(facts).places))
    return {place: location for place, location in found if location >= 0}
