"""DS014: collectives that nothing is computed beside, though there is something to compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import by_line, named, of_kind
from deepscope.analysis.findings.collectives_seen import Operation, collectives, share_of_wall
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.reduced_each_pass import too_early
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.small_collectives import one_by_one
from deepscope.records import Finding
from deepscope.trace.communication import is_collective
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

WORTH = 0.05
"""A line is named if it would save at least this share of the wall time."""
_REMEDIES = {
    Operation.ALL_REDUCE: "Start it before its result is needed (`async_op=True`, and `wait()` later), or let "
    "`DistributedDataParallel` sum gradients while the backward pass goes on.",
    Operation.REDUCE_SCATTER: "Let it run beside the backward pass: FSDP's `backward_prefetch=BACKWARD_PRE`; with "
    "`fully_shard`, a group for each block.",
    Operation.ALL_GATHER: "Fetch the next block's parameters early: FSDP's `forward_prefetch=True` and "
    "`backward_prefetch=BACKWARD_PRE`; with `fully_shard`, `set_modules_to_forward_prefetch`.",
    Operation.ALL_TO_ALL: "Start it before its result is needed (`async_op=True`): compute another part of the batch "
    "meanwhile, or exchange the next batch's inputs while this one is computed (torchrec's `TrainPipelineSparseDist`).",
    Operation.OTHER: "Start it before its result is needed (`async_op=True`, and `wait()` later).",
}
_SEND_LESS = (
    "Gradients are summed beside the backward pass already: send less (`model.register_comm_hook(None, "
    "bf16_compress_hook)` halves it) or less often (larger batches, or several backward passes a step, all but the "
    "last within `no_sync()`)."
)
COMPRESSED = 0.5
"""What is left of a sum of float32 gradients that are sent as bfloat16."""


def _find(facts: Facts) -> Iterator[Finding]:
    left = ~(too_early(facts) | one_by_one(facts))
    found = collectives(facts).choose(left)
    if not len(found):
        return
    exposed = by_line(found.location, facts.lines, found.exposed_ns)
    whole = int(exposed.sum())
    # Of what is exposed, as much can be hidden as is computed while nothing is sent.
    hidden = min(whole, _computing_alone_ns(facts))
    part = hidden / whole if whole else 0.0
    beside = by_line(found.location[found.backward], facts.lines, found.exposed_ns[found.backward])
    saving = share_of_wall(facts, ((exposed - beside) * part + beside * COMPRESSED * part).astype(np.int64))
    length = by_line(found.location, facts.lines, found.end - found.start)
    count = by_line(found.location, facts.lines)
    for line in np.flatnonzero(saving >= max(WORTH * facts.wall_ns, 1)).tolist():
        here = found.location == (line if line < facts.lines else -1)
        in_backward = 2 * int(beside[line]) > int(exposed[line])
        kinds = np.bincount(found.operation[here], weights=found.exposed_ns[here], minlength=len(Operation))
        yield RULE.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="nothing is computed while data is exchanged with other ranks",
            evidence={
                "exposed_ns": int(exposed[line]),
                "collective_ns": int(length[line]),
                "collectives": int(count[line]),
                "collectives_per_step": facts.per_step(int(count[line])),
            },
            saving_ns=int(saving[line]),
            remedy=(_SEND_LESS if in_backward else _REMEDIES[Operation(int(kinds.argmax()))])
            + " What is waited for a slower rank stays: compare the ranks (`deepscope ranks FOLDER`).",
        )


def _computing_alone_ns(facts: Facts) -> int:
    """How long something is computed while no collective runs, summed over the devices, within the window."""
    work, window = facts.work, facts.analysis.window
    if facts.has_device:
        kernels = facts.analysis.counted & (work.kind == Kind.KERNEL)
        total = 0
        for device in work.busy:
            here = kernels & (work.device == device)
            own, sent = here & ~work.collective, here & work.collective
            total += _without(work.start_ns[own], work.end_ns[own], union(work.start_ns[sent], work.end_ns[sent]))
        return total
    trace, attribution, events = facts.trace, facts.attribution, facts.trace.events
    operators, found = attribution.operators, collectives(facts)
    outer = operators.nodes[operators.caller < 0]
    outer = outer[~named(trace, of_kind(trace, Kind.OPERATOR), is_collective)[outer]]
    computing = union(events.start_ns[outer], events.end_ns[outer]).intersection(window)
    return _without(computing.start, computing.end, union(found.start, found.end))


def _without(start: Int64, end: Int64, sent: Intervals) -> int:
    computing = union(start, end)
    return computing.total_ns - int(sent.overlap_ns(computing.start, computing.end).sum())


RULE = Rule("DS014", "Exposed communication", _find)
