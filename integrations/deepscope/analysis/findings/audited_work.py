"""The time that operators took in the window of which the audit says how many were called for nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.trace.arrays import nearest_to
from deepscope.trace.format.audit import LineWork, OperatorUse
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

_NAMED = 3
"""Operators that are named."""


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
        location = facts.audited_line(use.place)
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


def both_passes_ns(facts: Facts, work: LineWork, *, each_ns: int = 0) -> int:
    """`unused_ns` of forward and of backward work."""
    forward_ns = unused_ns(facts, work.operators, backward=False, each_ns=each_ns)
    return forward_ns + unused_ns(facts, work.backward, backward=True, each_ns=each_ns)


def _name(facts: Facts, event: int) -> str:
    return facts.trace.strings[int(facts.trace.events.name[event])]
