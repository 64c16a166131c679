"""Collectives that cost more than they need: exposed, small, in each backward pass (DS014, DS015, DS016)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, covered_by, union
from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option
from deepscope.analysis.findings.recorded_collectives import CollectiveKind, Collectives, collectives, share_of_wall
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.trace.arrays import nearest_to
from deepscope.trace.communication import is_collective
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import stepped_optimizer

_FORWARD = "DistributedDataParallel.forward"
_SUM_ONCE = (
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
    return np.asarray(found.operation == CollectiveKind.ALL_REDUCE)


def _starts(facts: Facts) -> tuple[Int64, Int64]:
    """When forward passes of data-parallel modules and optimizers' steps start in the trace, ascending."""
    trace = facts.trace
    spans = of_kind(trace, Kind.ANNOTATION)
    forward, step = (
        np.sort(trace.events.start_ns[np.flatnonzero(named(trace, spans, which))])
        for which in (lambda name: name == _FORWARD, stepped_optimizer)
    )
    return forward, step


def _find_reduced_each_pass(facts: Facts) -> Iterator[Finding]:
    early = too_early(facts)
    if not early.any():
        return
    found = collectives(facts).choose(early)
    exposed = by_line(found.location, facts.lines, found.exposed_ns)
    saving = share_of_wall(facts, exposed)
    count = by_line(found.location, facts.lines)
    length = by_line(found.location, facts.lines, found.end - found.start)
    for line in np.flatnonzero(saving >= REDUCED_EACH_PASS.worth_ns(facts)).tolist():
        yield REDUCED_EACH_PASS.finding(
            facts,
            location=line,
            message="gradients are summed over all ranks in backward passes that are not the last before a step",
            evidence={
                "needless_collectives": int(count[line]),
                "needless_per_step": facts.per_step(int(count[line])),
                "collective_ns": int(length[line]),
                "exposed_ns": int(exposed[line]),
            },
            saving_ns=int(saving[line]),
            remedy=_SUM_ONCE + framework_option(facts, REDUCED_EACH_PASS.code),
        )


REDUCED_EACH_PASS = Rule(
    "DS016", "Gradients summed in every backward pass", _find_reduced_each_pass, measured_on=("cpu",)
)


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
    candidates = _follow_each_other(facts, found) & (found.operation == CollectiveKind.ALL_REDUCE) & ~too_early(facts)
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


def _find_small_collectives(facts: Facts) -> Iterator[Finding]:
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
        if saving < SMALL_COLLECTIVES.worth_ns(facts):
            continue
        evidence: Evidence = {
            **facts.counted("collectives", int(count[line])),
            "collective_usual_us": round(usual / 1000, 1),
            "exposed_ns": int(exposed[line]),
        }
        yield SMALL_COLLECTIVES.finding(
            facts,
            location=line,
            message="gradients are gathered in small buckets, and each sum over the ranks pays for its start"
            if in_buckets
            else "small tensors are summed over the ranks one by one, and each sum pays for its start",
            evidence=evidence,
            saving_ns=saving,
            remedy=_BUCKETS if in_buckets else _LARGER_BUCKETS,
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
_LARGER_BUCKETS = (
    "Sum them in one call: `DistributedDataParallel` gathers gradients in buckets; else put the tensors into one "
    "(`torch.cat`, `torch._utils._flatten_dense_tensors`), or call within `torch.distributed._coalescing_manager`."
)

SMALL_COLLECTIVES = Rule("DS015", "Many small collectives", _find_small_collectives, measured_on=("cpu",))


_REMEDIES = {
    CollectiveKind.ALL_REDUCE: "Start it before its result is needed (`async_op=True`, and `wait()` later), or let "
    "`DistributedDataParallel` sum gradients while the backward pass goes on.",
    CollectiveKind.REDUCE_SCATTER: "Let it run beside the backward pass: FSDP's `backward_prefetch=BACKWARD_PRE`; with "
    "`fully_shard`, a group for each block.",
    CollectiveKind.ALL_GATHER: "Fetch the next block's parameters early: FSDP's `forward_prefetch=True` and "
    "`backward_prefetch=BACKWARD_PRE`; with `fully_shard`, `set_modules_to_forward_prefetch`.",
    CollectiveKind.ALL_TO_ALL: "Start it before its result is needed (`async_op=True`): compute another part of the "
    "batch meanwhile, or exchange the next batch's inputs while this one is computed (torchrec's "
    "`TrainPipelineSparseDist`).",
    CollectiveKind.OTHER: "Start it before its result is needed (`async_op=True`, and `wait()` later).",
}
_SEND_LESS = (
    "Gradients are summed beside the backward pass already: send less (`model.register_comm_hook(None, "
    "bf16_compress_hook)` halves it) or less often (larger batches, or several backward passes a step, all but the "
    "last within `no_sync()`)."
)
COMPRESSED = 0.5
"""What is left of a sum of float32 gradients that are sent as bfloat16."""


def _find_exposed_collectives(facts: Facts) -> Iterator[Finding]:
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
    for line in np.flatnonzero(saving >= EXPOSED_COLLECTIVES.worth_ns(facts)).tolist():
        here = found.location == (line if line < facts.lines else -1)
        in_backward = 2 * int(beside[line]) > int(exposed[line])
        kinds = np.bincount(found.operation[here], weights=found.exposed_ns[here], minlength=len(CollectiveKind))
        yield EXPOSED_COLLECTIVES.finding(
            facts,
            location=line,
            message="nothing is computed while data is exchanged with other ranks",
            evidence={
                "exposed_ns": int(exposed[line]),
                "collective_ns": int(length[line]),
                **facts.counted("collectives", int(count[line])),
            },
            saving_ns=int(saving[line]),
            remedy=(_SEND_LESS if in_backward else _REMEDIES[CollectiveKind(int(kinds.argmax()))])
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
            total += _without(work.start_ns[own], work.end_ns[own], covered_by(work, sent))
        return total
    trace, attribution, events = facts.trace, facts.attribution, facts.trace.events
    operators, found = attribution.operators, collectives(facts)
    outer = operators.nodes[operators.caller < 0]
    outer = outer[~named(trace, of_kind(trace, Kind.OPERATOR), is_collective)[outer]]
    computing = covered_by(events, outer).intersection(window)
    return _without(computing.start, computing.end, union(found.start, found.end))


def _without(start: Int64, end: Int64, sent: Intervals) -> int:
    computing = union(start, end)
    return computing.total_ns - int(sent.overlap_ns(computing.start, computing.end).sum())


EXPOSED_COLLECTIVES = Rule("DS014", "Exposed communication", _find_exposed_collectives, worth=0.05)
