"""Memory: what fills it while it is short, and what is computed again to save it (DS008, DS030, DS031)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import in_modules, module_option
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.memory import MemoryCurve, capacity_bytes
from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.records import Edit, Finding, Severity
from deepscope.trace.arrays import distinct_places, distinct_values, nearest_to, pick, position_in
from deepscope.trace.model import Int64

SHORT = 0.7
"""Memory is short if the peak takes this part of what the device has, or if an allocation failed."""
LARGE = 0.1
"""A saving of this part of the peak is large."""


def is_short(facts: Facts, curve: MemoryCurve) -> bool:
    """Whether it would help to need less memory; False where the trace does not say what the device has."""
    account = facts.trace.header.memory
    if account is not None and account.failure is not None:
        return account.failure.on_cpu == (curve.device_type == 0)
    capacity = capacity_bytes(facts.trace, curve.device_type, curve.device_id)
    return bool(capacity) and max(curve.peak_bytes, int(curve.reserved_bytes.max())) >= SHORT * capacity


def memory_severity(facts: Facts, curve: MemoryCurve, saving_bytes: int) -> Severity:
    """Where memory is short a large saving is a warning, a smaller one worth a word; else it is a hint."""
    if not is_short(facts, curve):
        return "hint"
    return "warning" if saving_bytes >= LARGE * curve.peak_bytes else "info"


STALE_GRADIENTS_WORTH = 0.05
"""The place is named if the peak would be lower by this part of it."""
_GRADIENTS = KINDS.index("gradients")
_KEEPS, _RELEASES = "set_to_none=False", "set_to_none=True"
_ZEROES = "Optimizer.zero_grad#"


def _find_stale_gradients(facts: Facts) -> Iterator[Finding]:
    use = facts.analysis.memory
    for curve in use.devices:
        stale = _stale_bytes(facts, curve)
        saving = use.saving_without(curve, stale)
        if saving < max(STALE_GRADIENTS_WORTH * curve.peak_bytes, 1):
            continue
        line = _zeroing_line(facts)
        yield STALE_GRADIENTS.finding(
            facts,
            location=line,
            message="the gradients of the step before are held during the forward pass",
            evidence={
                "gradients_of_peak_bytes": int(stale[curve.place].max()),
                "peak_bytes": curve.peak_bytes,
                "saving_of_peak_bytes": saving,
            },
            saving_ns=0,
            remedy="Call `optimizer.zero_grad()` right behind `optimizer.step()`, and leave `set_to_none` at True.",
            edits=_edits(facts, line),
            severity=memory_severity(facts, curve, saving),
        )


def _stale_bytes(facts: Facts, curve: MemoryCurve) -> Int64:
    """Bytes of gradients that no longer and not yet are of use, after each event; shape of all events.

    A gradient is of no use from the optimizer's step to the next backward pass. In that pass the gradients would come
    one after the other: the part of them that would not be there yet falls in a line from all to nothing.
    """
    use, account = facts.analysis.memory, facts.trace.header.memory
    stale = np.zeros(len(use.rows), np.int64)
    blocks = use.blocks
    of_device = (blocks.kind == _GRADIENTS) & (blocks.device == curve.code)
    surveys = sorted(account.surveys, key=lambda one: one.at_ns) if account is not None and of_device.any() else []
    moments = np.array([one.at_ns for one in surveys], np.int64)
    places = np.searchsorted(use.trace.memory.ts_ns[use.rows], moments, "left")
    stepped, begun = -1, -1
    for survey, place in zip(surveys, places.tolist(), strict=True):
        if survey.occasion == "optimizer":
            stepped, begun = place, -1
        elif survey.occasion == "backward" and stepped >= 0 and begun < 0:
            begun = place
            held = of_device & (blocks.begin < stepped) & (blocks.end > stepped)
            stale[stepped:begun] += use.live_bytes(held)[stepped:begun]
        elif survey.occasion == "gradients" and begun >= 0:
            kept = of_device & (blocks.begin < stepped) & (blocks.end > place)
            whole = int(blocks.size_bytes[kept].sum())
            length = max(place - begun, 1)
            stale[begun:place] += whole * np.arange(length, 0, -1)[: place - begun] // length
            stepped = begun = -1
    return stale


def _zeroing_line(facts: Facts) -> int:
    """The line that most often sets gradients to zero; -1 where the trace does not say."""
    trace, location = facts.trace, facts.attribution.owners.location
    names = np.array([name.startswith(_ZEROES) for name in trace.strings] + [False], np.bool_)
    found = location[np.flatnonzero(names[trace.events.name])]
    counts = by_line(found, facts.lines)[:-1]
    return int(np.argmax(counts)) if counts.any() else -1


def _edits(facts: Facts, line: int) -> list[Edit]:
    place = facts.locations[line] if line >= 0 else None
    text = facts.texts.at(place).text if place is not None else ""
    return [Edit(place.line, _KEEPS, _RELEASES)] if place is not None and text.count(_KEEPS) == 1 else []


STALE_GRADIENTS = Rule("DS031", "Gradients held during the forward pass", _find_stale_gradients)


MOST = 0.4
"""Activations dominate if they are this part of the peak."""
KEPT_ACTIVATIONS_WORTH = 0.1
"""A line is named if the peak could be lower by this part of it."""
_ACTIVATIONS = KINDS.index("activations")


def _find_kept_activations(facts: Facts) -> Iterator[Finding]:
    use = facts.analysis.memory
    for curve in use.devices:
        kept = curve.held_bytes[:, _ACTIVATIONS]
        if int(kept.sum()) < MOST * curve.peak_bytes or not is_short(facts, curve):
            continue
        is_kept = (use.blocks.kind == _ACTIVATIONS) & (use.blocks.device == curve.code)
        line_of_block = pick(use.line, use.blocks.begin)
        for line in np.flatnonzero(kept[:-1] >= max(KEPT_ACTIVATIONS_WORTH * curve.peak_bytes, 1)).tolist():
            saving = use.saving_without(curve, use.live_bytes(is_kept & (line_of_block == line)))
            if saving < KEPT_ACTIVATIONS_WORTH * curve.peak_bytes:
                continue
            module, option = in_modules(facts, KEPT_ACTIVATIONS.code, _operators_of(facts, line))
            yield KEPT_ACTIVATIONS.finding(
                facts,
                location=line,
                message="memory is short, and most of it is kept for the backward pass" + module,
                evidence={
                    "activations_of_peak_bytes": int(kept[line]),
                    "peak_bytes": curve.peak_bytes,
                    "saving_of_peak_bytes": saving,
                },
                saving_ns=0,
                remedy="Compute it anew in the backward pass: `torch.utils.checkpoint.checkpoint(block, x, "
                "use_reentrant=False)` around each block that this line runs. It costs its forward pass once more."
                + option,
                severity=memory_severity(facts, curve, saving),
            )


def _operators_of(facts: Facts, line: int) -> Int64:
    """The forward operators (events) of a line, in the whole trace."""
    attribution = facts.attribution
    nodes = attribution.operators.nodes
    own = (attribution.owners.location[nodes] == line) & ~attribution.calls.backward[nodes]
    return np.asarray(nodes[own])


KEPT_ACTIVATIONS = Rule("DS030", "Activations fill the memory", _find_kept_activations)


def _find(facts: Facts) -> Iterator[Finding]:
    again = _recomputed(facts)
    if not len(again):
        return
    location = _called_at(facts, again)
    spent = by_line(location, facts.lines, facts.cost_ns(again) + _before_ns(facts, again))
    calls = by_line(location, facts.lines)
    for line in np.flatnonzero(spent >= RULE.worth_ns(facts)).tolist():
        here = again[location == (line if line < facts.lines else -1)]
        option = module_option(facts, RULE.code, here)
        block = _block(facts, here) if option is not None else ""
        yield RULE.finding(
            facts,
            location=line,
            message="activations are computed again in the backward pass, which costs time and saves memory"
            + (f" (module {block})" if block else ""),
            evidence={
                "recomputed_ns": int(spent[line]),
                **facts.counted("recomputations", int(calls[line])),
            },
            saving_ns=int(spent[line]),
            remedy="If memory allows, checkpoint fewer blocks or none, or keep what is expensive to compute "
            "(`torch.utils.checkpoint.create_selective_checkpoint_contexts`)."
            + (f" Here that is {option.option}." if option is not None else ""),
        )


def _recomputed(facts: Facts) -> Int64:
    """Runs of lines and calls of modules below autograd's engine that also run in the forward pass (events, ascending).

    Those of a backward that is written in Python do not; and only forward work takes numbers of autograd's.
    """
    calls, events = facts.attribution.calls, facts.trace.events
    place = _places(facts)
    backward = (place >= 0) & calls.backward
    if not backward.any():
        return np.zeros(0, np.int64)
    ahead = np.zeros(int(place.max()) + 1, np.bool_)
    ahead[place[(place >= 0) & ~calls.backward]] = True
    top = facts.topmost(backward & ahead[place])
    nodes = facts.attribution.operators.nodes
    forward = nodes[calls.backward[nodes] & (events.sequence[nodes] >= 0) & (events.fwd_thread[nodes] <= 0)]
    found = distinct_values(nearest_to(forward, calls.parent, facts.marked(top)))
    found = found[found >= 0]
    return np.asarray(found[facts.analysis.extent.holds(events.start_ns[found])])


def _before_ns(facts: Facts, again: Int64) -> Int64:
    """On the CPU, what checkpointing itself does before each: time since its autograd node or the one before it."""
    if facts.has_device:
        return np.zeros(len(again), np.int64)
    attribution, events = facts.attribution, facts.trace.events
    operators = attribution.operators
    node = pick(operators.nodes, pick(operators.around, pick(attribution.calls.parent, again)))
    order = np.lexsort((events.start_ns[again], events.thread[again]))
    rows, around = again[order], node[order]
    since = np.where(around >= 0, events.start_ns[around], events.start_ns[rows])
    follows = np.flatnonzero((around[1:] == around[:-1]) & (around[1:] >= 0)) + 1
    since[follows] = events.end_ns[rows[follows - 1]]
    result = np.zeros(len(again), np.int64)
    result[order] = np.maximum(events.start_ns[rows] - since, 0)
    return result


def _block(facts: Facts, again: Int64) -> str:
    """Path and class of the module that most of what is computed again lies in; "" for none."""
    modules = facts.analysis.modules
    at = position_in(modules.nodes, again, len(facts.trace.events))
    classes = dict(modules.names)
    times: Counter[str] = Counter()
    for module, count in enumerate(np.bincount(modules.module[at[at >= 0]]).tolist()):
        if count:
            times[modules.names[module][0].rpartition(".")[0]] += count
    (path, _), *_ = times.most_common(1) or [("", 0)]
    return f"{path}, {classes[path]}" if path in classes else ""


def _places(facts: Facts) -> Int64:
    """A number for the line or the module that each event is a run of, -1 for none; shape (n,)."""
    place: Int64 = facts.attribution.scopes.location.copy()
    modules = facts.analysis.modules
    place[modules.nodes] = facts.lines + modules.module
    return place


def _called_at(facts: Facts, again: Int64) -> Int64:
    """The line that called what is computed again, as most calls of it in the forward pass say; -1 for none."""
    calls, scopes = facts.attribution.calls, facts.attribution.scopes
    place = _places(facts)
    wanted, inverse = distinct_places(place[again])
    runs = np.flatnonzero(~calls.backward & (place >= 0))
    which = position_in(wanted, place[runs], int(max(place.max(), 0)) + 1)
    runs, which = runs[which >= 0], which[which >= 0]
    caller = pick(scopes.location, nearest_to(pick(calls.parent, runs), calls.parent, scopes.marks))
    width = facts.lines + 1
    pairs = np.bincount(which * width + caller + 1, minlength=len(wanted) * width).reshape(len(wanted), width)
    chosen = pairs.argmax(axis=1) - 1
    own = scopes.location[again]
    found = chosen[inverse]
    return np.where(found >= 0, found, own)


RULE = Rule("DS008", "Recomputed activations", _find, measured_on=("cpu",))
