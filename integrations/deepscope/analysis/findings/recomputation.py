"""DS008: what the forward pass computed is computed again in the backward pass (activation checkpointing)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to, position_in
from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.findings.calls_below import cost_ns, marked, topmost
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import module_option
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import distinct_places, distinct_values, pick
from deepscope.trace.model import Int64

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""


def _find(facts: Facts) -> Iterator[Finding]:
    again = _recomputed(facts)
    if not len(again):
        return
    location = _called_at(facts, again)
    spent = by_line(location, facts.lines, cost_ns(facts, again) + _before_ns(facts, again))
    calls = by_line(location, facts.lines)
    for line in np.flatnonzero(spent >= max(WORTH * facts.wall_ns, 1)).tolist():
        here = again[location == (line if line < facts.lines else -1)]
        option = module_option(facts, RULE.code, here)
        block = _block(facts, here) if option is not None else ""
        yield RULE.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="activations are computed again in the backward pass, which costs time and saves memory"
            + (f" (module {block})" if block else ""),
            evidence={
                "recomputed_ns": int(spent[line]),
                "recomputations": int(calls[line]),
                "recomputations_per_step": facts.per_step(int(calls[line])),
            },
            saving_ns=int(spent[line]),
            remedy="If memory allows, checkpoint fewer blocks or none, or keep what is dear to compute "
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
    top = topmost(facts, backward & ahead[place])
    nodes = facts.attribution.operators.nodes
    forward = nodes[calls.backward[nodes] & (events.sequence[nodes] >= 0) & (events.fwd_thread[nodes] <= 0)]
    found = distinct_values(nearest_to(forward, calls.parent, marked(facts, top)))
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
