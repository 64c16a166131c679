"""DS023: convolutions look for the best algorithm again and again, since their inputs have other shapes each time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line
from deepscope.analysis.findings.already_set import tries_algorithms
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.model import Int64

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
STEPS = 2
"""In so many steps at least a line must search: what the first one finds is kept for its shapes."""

_REMEDY = (
    "Give convolutions inputs of few shapes (pad to a few sizes, `drop_last=True`), or let none be tried out: "
    "`torch.backends.cudnn.benchmark = False`{option}."
)
_LIGHTNING = " (`Trainer(benchmark=False)`)"


def _find(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or tries_algorithms(facts.trace) is False:
        return
    found = facts.searches
    found = found[_first_of_shapes(facts, found)]
    step = facts.attribution.training.steps.of(facts.trace.events.start_ns[found])
    location = facts.attribution.owners.location[found]
    recurs = _in_steps(location[step >= 0], step[step >= 0], facts.lines) >= STEPS
    inside = facts.analysis.window.locate(facts.trace.events.start_ns[found]) >= 0
    found, location = found[inside], location[inside]
    spent = by_line(location, facts.lines, _searching_ns(facts, found))
    count = by_line(location, facts.lines)
    for line in np.flatnonzero(recurs & (spent >= max(WORTH * facts.wall_ns, 1))).tolist():
        place = line if line < facts.lines else -1
        evidence: Evidence = {
            "searching_ns": int(spent[line]),
            "searches": int(count[line]),
            "searches_per_step": facts.per_step(int(count[line])),
        }
        if shapes := _shapes(facts, found[location == place]):
            evidence["shapes"] = shapes
        yield RULE.finding(
            facts,
            location=place,
            message="convolutions meet new shapes step after step and try out algorithms for each, and all else waits",
            evidence=evidence,
            saving_ns=int(spent[line]),
            remedy=_REMEDY.format(option=_LIGHTNING if "lightning" in facts.trace.header.versions else ""),
        )


def _first_of_shapes(facts: Facts, found: Int64) -> Mask:
    """Which searches are the first for their shapes, as far as these are known; what is forgotten is another matter."""
    events = facts.trace.events
    known = events.shapes[found] >= 0
    _, first = np.unique(np.stack((events.name[found], events.shapes[found])), axis=1, return_index=True)
    is_first = np.zeros(len(found), np.bool_)
    is_first[first] = True
    return np.asarray(is_first | ~known)


def _in_steps(location: Int64, step: Int64, lines: int) -> Int64:
    """In how many steps each line occurs; shape (lines + 1,)."""
    width = int(step.max(initial=0)) + 1
    return by_line(distinct_values((location + 1) * width + step) // width - 1, lines)


def _searching_ns(facts: Facts, found: Int64) -> Int64:
    """How long each search takes, from when the device has done what was queued before it; shape of `found`."""
    events, work = facts.trace.events, facts.work
    start, end = events.start_ns[found], events.end_ns[found]
    order = np.argsort(work.launch_ns, kind="stable")
    done = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(work.end_ns[order]))
    before = done[np.searchsorted(work.launch_ns[order], start)]
    return np.asarray(end - np.clip(before, start, end))


def _shapes(facts: Facts, found: Int64) -> int:
    """How many different shapes were searched for; 0 where they are not recorded."""
    shapes = facts.trace.events.shapes[found]
    return len(distinct_places(shapes[shapes >= 0])[0])


RULE = Rule("DS023", "Algorithms sought for changing shapes", _find)
