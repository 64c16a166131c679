"""DS015: many small collectives, one after the other, each of which pays for its start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to
from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings.collectives_seen import Collectives, Operation, collectives, share_of_wall
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.reduced_each_pass import too_early
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
MANY = 8
"""A line starts many if it starts so many in a step (without steps: in all)."""
SMALL_NS = 100_000
"""Starting a collective takes a device at most this; gloo, which wakes threads and passes sockets, `SMALL_CPU_NS`."""
SMALL_CPU_NS = 1_000_000
LONG = 4
"""One that takes longer than so many medians is not small, or was held up."""
ROUNDS_APART = 2
"""Between two that could be one, other work of the line is at most so many operators (a division, a copy)."""
BUCKET_BYTES = 25 * 1024 * 1024
"""torch's own size of the buckets that gradients are gathered in."""


def one_by_one(facts: Facts) -> Mask:
    """Which collectives are small, many on their line, and could be one; shape (k,)."""
    return facts.once(_one_by_one)


def _one_by_one(facts: Facts) -> Mask:
    found = collectives(facts)
    candidates = _follow_each_other(facts, found) & (found.operation == Operation.ALL_REDUCE) & ~too_early(facts)
    count = by_line(found.location[candidates], facts.lines)
    many = count >= MANY * max(facts.steps, 1)
    result = np.zeros(len(found), np.bool_)
    for line in np.flatnonzero(many).tolist():
        here = np.flatnonzero(candidates & (found.location == (line if line < facts.lines else -1)))
        if _usual_ns(found, here) <= (SMALL_NS if facts.has_device else SMALL_CPU_NS):
            result[here] = True
    return result


def _usual_ns(found: Collectives, rows: Int64) -> int:
    """What one takes: the median, since the first of a round waits for ranks that are late."""
    return int(np.median(found.end[rows] - found.start[rows])) if len(rows) else 0


def _follow_each_other(facts: Facts, found: Collectives) -> Mask:
    """Which are started right before or after another of the same kind on the same line, or gather too little."""
    if not len(found):
        return np.zeros(0, np.bool_)
    in_small_buckets = found.backward & _has_small_buckets(facts)
    order = np.argsort(found.launch_ns, kind="stable")
    launch, location, operation = found.launch_ns[order], found.location[order], found.operation[order]
    same = (location[1:] == location[:-1]) & (operation[1:] == operation[:-1])
    busy = _own_operators(facts)
    between = np.searchsorted(busy, launch[1:]) - np.searchsorted(busy, launch[:-1])
    joined = same & (between <= ROUNDS_APART)
    result = np.zeros(len(found), np.bool_)
    result[order] = np.append(joined, False) | np.append(False, joined)
    return (result & ~found.backward) | in_small_buckets


def _own_operators(facts: Facts) -> Int64:
    """When operators of the training thread that no other called start, without those that talk to other ranks."""
    trace, attribution = facts.trace, facts.attribution
    operators, events = attribution.operators, trace.events
    outer = operators.nodes[operators.caller < 0]
    talking = named(
        trace,
        of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION),
        lambda name: name.startswith(("c10d::", "nccl:", "gloo:", "record_param_comms")),
    )
    inside = nearest_to(outer, attribution.calls.parent, talking) >= 0
    return np.sort(events.start_ns[outer[(events.thread[outer] == attribution.training.thread) & ~inside]])


def _has_small_buckets(facts: Facts) -> bool:
    """Whether gradients are gathered in smaller buckets than by default, for all that the trace says."""
    settings = facts.trace.header.settings
    sizes = [one.bucket_bytes for one in settings.parallel] if settings is not None else []
    return bool(sizes) and 0 < max(sizes) < BUCKET_BYTES


def _find(facts: Facts) -> Iterator[Finding]:
    chosen = one_by_one(facts)
    if not chosen.any():
        return
    found = collectives(facts).choose(chosen)
    exposed = by_line(found.location, facts.lines, found.exposed_ns)
    count = by_line(found.location, facts.lines)
    for line in np.flatnonzero(count).tolist():
        here = np.flatnonzero(found.location == (line if line < facts.lines else -1))
        usual = _usual_ns(found, here)
        # One would do for all of a round, as long as the first, which also waits for ranks that are late.
        spared = here[~_begins_round(facts, found)[here]]
        in_buckets = bool(found.backward[here].any())
        if facts.has_device or in_buckets:
            each = np.minimum(found.exposed_ns[spared], LONG * usual)
            saving = int(share_of_wall(facts, each.sum(keepdims=True))[0])
        else:
            # The line hands over to gloo's threads and is woken by them: all of its time goes with that.
            first = np.setdiff1d(here, spared)
            waiting = int(facts.analysis.columns["self_cpu_ns"][line]) - int(found.exposed_ns[first].sum())
            saving = max(waiting, 0) * len(spared) // len(here)
        if saving < WORTH * facts.wall_ns:
            continue
        evidence: Evidence = {
            "collectives": int(count[line]),
            "collectives_per_step": facts.per_step(int(count[line])),
            "collective_usual_us": round(usual / 1000, 1),
            "exposed_ns": int(exposed[line]),
        }
        yield RULE.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="gradients are gathered in small buckets, and each sum over the ranks pays for its start"
            if in_buckets
            else "small tensors are summed over the ranks one by one, and each sum pays for its start",
            evidence=evidence,
            saving_ns=saving,
            remedy=_BUCKETS if in_buckets else _REMEDY,
        )


def _begins_round(facts: Facts, found: Collectives) -> Mask:
    """Which collectives are the first of their line in a step, or since it did something else; shape (k,)."""
    order = np.argsort(found.launch_ns, kind="stable")
    launch, location = found.launch_ns[order], found.location[order]
    turn = facts.attribution.training.steps.of(launch)
    busy = np.searchsorted(_own_operators(facts), launch)
    result = np.zeros(len(found), np.bool_)
    goes_on = (location[1:] == location[:-1]) & (turn[1:] == turn[:-1])
    goes_on &= (busy[1:] - busy[:-1] <= ROUNDS_APART) | found.backward[order][1:]
    result[order] = np.append(True, ~goes_on)[: len(found)]
    return result


_BUCKETS = "Leave `bucket_cap_mb` of `DistributedDataParallel` at its 25 MB, or make it larger."
_REMEDY = (
    "Sum them in one call: `DistributedDataParallel` gathers gradients in buckets; else put the tensors into one "
    "(`torch.cat`, `torch._utils._flatten_dense_tensors`), or call within `torch.distributed._coalescing_manager`."
)

RULE = Rule("DS015", "Many small collectives", _find, measured_on=("cpu",))
