"""The part of a trace that a view asks for: a step, a phase of training, the modules of a name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest
from deepscope.analysis.array_ops.extent import Extent
from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.phases import PhaseTimeline, phase_of_work
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.modules import ModuleScopes
from deepscope.errors import OptionError
from deepscope.records import PHASES, View
from deepscope.trace.model import Int64

_EVER = 2**61
"""Beyond any time of a trace."""


class SelectedRows(NamedTuple):
    """What counts, and where wall time and idle time are measured."""

    extent: Extent
    window: Intervals
    steps: int


def narrow(attribution: Attribution, modules: ModuleScopes, phases: PhaseTimeline, view: View) -> SelectedRows:
    """The part of a trace that a view asks for.

    Work belongs to the phase of its launch, and to the modules that it ran below; so do operators and lines, to the
    phase by the clock of the training thread.

    Raises:
        OptionError: the trace has no step of this number; the message lists those that it has.
    """
    training = attribution.training
    if view.step is None:
        window, steps = training.window, len(training.steps)
        extent = Extent(None)
    else:
        if view.step not in training.steps.number:
            known = ", ".join(map(str, training.steps.number.tolist()))
            raise OptionError("step", view.step, f"no such step; it has {known or 'no steps'}")
        window = training.steps.chosen(view.step)
        steps = len(window.start)
        extent = Extent(window)
    if not view.is_filtered:
        return SelectedRows(extent, window, steps)
    work = attribution.work
    chosen = extent.launched(work.launch_ns)
    spans, events = extent.spans, None
    if view.phase:
        number = PHASES.index(view.phase)
        chosen &= phase_of_work(work, phases) == number
        of_phase = _spans_of(phases, number)
        spans = of_phase if spans is None else spans.intersection(of_phase)
        window = window.intersection(of_phase)
    if view.module:
        events = _below(modules, view.module)
        chosen &= (work.node >= 0) & events[work.node]
        window = window.intersection(_calls_on(attribution, modules, events))
    return SelectedRows(Extent(spans, events, chosen), window, steps)


def _spans_of(phases: PhaseTimeline, number: int) -> Intervals:
    """When the training thread was in a phase; "other" is all the rest of time, outside the window, too."""
    chosen = phases.phase == number
    if number != PHASES.index("other"):
        return union(phases.spans.start[chosen], phases.spans.end[chosen])
    named = union(phases.spans.start[~chosen], phases.spans.end[~chosen])
    return named.complement(Intervals(np.array([-_EVER]), np.array([_EVER])))


def _below(modules: ModuleScopes, pattern: str) -> Mask:
    """Which events ran in a module whose path or class matches, or in one within it; shape (n,)."""
    if not len(modules.nodes):
        return np.zeros(len(modules.of_event), np.bool_)
    found = [any(fnmatchcase(name, pattern) for name in one[:2]) for one in modules.instances]
    inside = nearest(modules.callers, np.array(found, np.bool_)[modules.instance]) >= 0
    return np.append(inside, False)[modules.of_event]


def _calls_on(attribution: Attribution, modules: ModuleScopes, events: Mask) -> Intervals:
    """When the training thread was in calls of these modules."""
    of = attribution.trace.events
    rows: Int64 = modules.nodes[events[modules.nodes] & (of.thread[modules.nodes] == attribution.training.thread)]
    return union(of.start_ns[rows], of.end_ns[rows])
