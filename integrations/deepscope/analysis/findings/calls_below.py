"""What some calls cost: on the CPU their own length, else the device's work that they launched."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, mask_of, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.trace.arrays import nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


def marked(facts: Facts, events: Int64) -> Mask:
    """Which events are these; shape (n,)."""
    return mask_of(events, len(facts.trace.events))


def topmost(facts: Facts, chosen: Mask) -> Int64:
    """The chosen events (ascending) that lie in no other chosen one on their thread."""
    parent = facts.attribution.calls.parent
    events = np.flatnonzero(chosen)
    return np.asarray(events[nearest_to(pick(parent, events), parent, chosen) < 0])


def operators_named(facts: Facts, *names: str) -> Int64:
    """The operators (events, ascending) that bear one of these names and start within the extent."""
    found = np.flatnonzero(named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), frozenset(names).__contains__))
    return np.asarray(found[facts.analysis.extent.holds(facts.trace.events.start_ns[found])])


def cost_ns(facts: Facts, events: Int64) -> Int64:
    """What each of some calls cost, none of which lies in another; shape of `events`, which are ascending.

    On the CPU that is its length, less what recording added to it; else the time of the device's work that it
    launched, divided by the number of devices.
    """
    trace, work = facts.trace, facts.work
    if not facts.has_device:
        start, end = trace.events.start_ns[events], trace.events.end_ns[events]
        here = trace.events.thread[events] == facts.attribution.training.thread
        added = facts.analysis.added.idle.intersection(facts.analysis.window).overlap_ns(start, end)
        return facts.analysis.extent.clipped_ns(start, end) - np.where(here, added, 0)
    result = np.zeros(len(events), np.int64)
    if len(events):
        above = nearest_to(work.node, facts.attribution.calls.parent, marked(facts, events))
        launched = facts.analysis.counted & (above >= 0)
        np.add.at(result, np.searchsorted(events, above[launched]), work.duration_ns[launched])
    return result // facts.devices
