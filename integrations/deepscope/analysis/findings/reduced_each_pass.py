"""DS016: gradients are summed over the ranks in every backward pass, though the optimizer steps after several."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings.collectives_seen import Collectives, Operation, collectives, share_of_wall
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import stepped_optimizer

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
_FORWARD = "DistributedDataParallel.forward"
_REMEDY = (
    "Run all backward passes but the last before `optimizer.step()` within `with model.no_sync():` (of "
    "`DistributedDataParallel`; the forward pass belongs inside, too)."
)


def too_early(facts: Facts) -> Mask:
    """Which collectives sum gradients that a later backward pass adds to before the optimizer steps; shape (k,)."""
    return facts.once(_too_early)


def _too_early(facts: Facts) -> Mask:
    found = collectives(facts)
    forward, step = _starts(facts)
    if not len(forward) or not len(step):
        return np.zeros(len(found), np.bool_)
    # A forward pass is the last before a step if the next one starts behind that step; of the last, nobody knows more.
    steps_before = np.searchsorted(step, forward)
    last = np.append(steps_before[1:] != steps_before[:-1], True)
    of_pass = np.searchsorted(forward, found.launch_ns, side="right") - 1
    early = (of_pass >= 0) & ~last[of_pass]
    followed = np.searchsorted(step, found.launch_ns) < len(step)
    return np.asarray(early & found.backward & _of_gradients(found) & followed)


def _of_gradients(found: Collectives) -> Mask:
    return np.asarray(found.operation == Operation.ALL_REDUCE)


def _starts(facts: Facts) -> tuple[Int64, Int64]:
    """When forward passes of data-parallel modules and optimizers' steps start in the trace, ascending."""
    trace = facts.trace
    spans = of_kind(trace, Kind.ANNOTATION)
    forward, step = (
        np.sort(trace.events.start_ns[np.flatnonzero(named(trace, spans, which))])
        for which in (lambda name: name == _FORWARD, stepped_optimizer)
    )
    return forward, step


def _find(facts: Facts) -> Iterator[Finding]:
    early = too_early(facts)
    if not early.any():
        return
    found = collectives(facts).choose(early)
    exposed = by_line(found.location, facts.lines, found.exposed_ns)
    saving = share_of_wall(facts, exposed)
    count = by_line(found.location, facts.lines)
    length = by_line(found.location, facts.lines, found.end - found.start)
    for line in np.flatnonzero(saving >= max(WORTH * facts.wall_ns, 1)).tolist():
        yield RULE.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="gradients are summed over all ranks in backward passes that are not the last before a step",
            evidence={
                "needless_collectives": int(count[line]),
                "needless_per_step": facts.per_step(int(count[line])),
                "collective_ns": int(length[line]),
                "exposed_ns": int(exposed[line]),
            },
            saving_ns=int(saving[line]),
            remedy=_REMEDY + framework_option(facts, RULE.code),
        )


RULE = Rule("DS016", "Gradients summed in every backward pass", _find, measured_on=("cpu",))
