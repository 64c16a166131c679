"""Which line makes a step long: the one on which the training thread is longer than it usually is in a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.numbers.idle import timeline
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.model import Int64

_MOST_CELLS = 20_000_000
"""Steps times lines; of more lines those with most time are looked at."""


class Excess(NamedTuple):
    """Of each step; arrays of shape (s,)."""

    location: Int64
    """The line, -1 where no line is longer than usual."""
    excess_ns: Int64
    """Its time in the step less its median over the steps."""


def step_excess(of: Attribution) -> Excess:
    """The line of each step; none where there are fewer than three steps, or no lines."""
    steps, lines = of.training.steps, len(of.scopes.locations)
    nothing = Excess(np.full(len(steps), -1, np.int64), np.zeros(len(steps), np.int64))
    if len(steps) < 3 or not lines:
        return nothing
    line = timeline(of.trace.events, of.runs, of.training.thread, steps.spans)
    on_line = line.location >= 0
    location, spent = line.location[on_line], (line.end - line.start)[on_line]
    step = steps.of(line.start[on_line])
    whole = np.zeros(lines, np.int64)
    np.add.at(whole, location, spent)
    kept = np.sort(np.argsort(-whole, kind="stable")[: min(int((whole > 0).sum()), _MOST_CELLS // len(steps))])
    if not len(kept):
        return nothing
    place = np.full(lines, -1, np.int64)
    place[kept] = np.arange(len(kept))
    known = place[location] >= 0
    times = np.zeros((len(steps), len(kept)), np.int64)
    np.add.at(times, (step[known], place[location[known]]), spent[known])
    over = times - np.median(times, axis=0).astype(np.int64)
    most = over.argmax(axis=1)
    excess = over[np.arange(len(steps)), most]
    return Excess(np.where(excess > 0, kept[most], -1), np.maximum(excess, 0))
