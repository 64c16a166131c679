"""The CPU's time that one finding claims, so that no other claims it again."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union
from deepscope.analysis.findings import data_loader, logging_lines, sliced_calls, tiny_operators, worker_restarts
from deepscope.analysis.findings.facts import Facts


def claimed_by_others(facts: Facts) -> Intervals:
    """When the training thread loaded data (DS003), was on a line that loops over operators (DS007), is called with
    slices (DS034) or logs (DS019), or started workers anew (DS021), as far as that is found.

    For traces of the CPU alone.
    """
    return facts.once(_claimed_by_others)


def _claimed_by_others(facts: Facts) -> Intervals:
    others = (_loading_and_loops(facts), logging_lines.logging(facts), worker_restarts.restarts(facts))
    return union(np.concatenate([one.start for one in others]), np.concatenate([one.end for one in others]))


def _loading_and_loops(facts: Facts) -> Intervals:
    loading = facts.loading if data_loader.RULE.found(facts) else NO_INTERVALS
    loops = tiny_operators.looping_lines(facts) | sliced_calls.sliced_lines(facts)
    if not loops:
        return loading
    line = facts.timeline
    looping = np.array([number in loops for number in range(facts.lines)] + [False])[line.location]
    return union(np.append(loading.start, line.start[looping]), np.append(loading.end, line.end[looping]))
