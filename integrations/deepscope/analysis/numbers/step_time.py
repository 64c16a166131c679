"""The time of steps, split by what goes on: device first, then the runtime, data loading, other work of the CPU.

The definition is that of torch-tb-profiler (torch_tb_profiler/profiler/event_parser.py and overall_parser.py, 0.4.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals, union
from deepscope.analysis.numbers.step_roles import ROLES, Roles
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.trace.model import Events, Int64

_FEWER = 0.8
"""A last step with less than this share of the work of the one before was cut off by the recording's end."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """The steps, each from its begin to the end of the work that it launched, and what they are made of."""

    start: Int64
    """Shape (s,)."""
    end: Int64
    host_start: Int64
    """When each begins on the CPU; shape (s,)."""
    parts: Int64
    """Nanoseconds of each step by role; shape (s, 8), in the order of `ROLES`."""

    @property
    def window(self) -> Intervals:
        """From the begin of the first to the end of the last."""
        return union(self.start[:1], self.end[-1:])


def step_time(events: Events, work: OwnedWork, roles: Roles) -> StepTime:
    """Splits the time of the steps."""
    start, end = _with_their_work(events, work, roles)
    left = union(start, end)
    # Steps that overlap (a device's beside the CPU's) are counted one by one, as the definition has it.
    parts = np.zeros((len(start), len(ROLES)), np.int64)
    for place, role in enumerate(ROLES[:-1]):
        which = roles.by_name[role]
        spans = union(events.start_ns[which], events.end_ns[which])
        parts[:, place] = spans.intersection(left).overlap_ns(start, end)
        left = spans.complement(left)
    parts[:, -1] = left.overlap_ns(start, end)
    return StepTime(start, end, roles.step_start[: len(start)], parts)


def _with_their_work(events: Events, work: OwnedWork, roles: Roles) -> tuple[Int64, Int64]:
    """The steps, each reaching to the end of the work that it launched, the next from there on.

    A last step that launched nothing, or much less than the one before it, is left out: its work came too late for the
    recording.
    """
    start, end = roles.step_start.copy(), roles.step_end.copy()
    whole = np.flatnonzero(work.counts & (work.node >= 0)) if work.metric == "device" else np.zeros(0, np.int64)
    whole = whole[roles.by_name["runtime"][work.node[whole]]]
    call = work.node[whole]
    call_start, call_end = events.start_ns[call], events.end_ns[call]
    step = np.searchsorted(np.maximum.accumulate(end), call_start, side="right") if len(end) else call
    inside = step < len(end)
    inside[inside] = (call_start[inside] >= start[step[inside]]) & (call_end[inside] <= end[step[inside]])
    whole, step = whole[inside], step[inside]
    if not len(whole):
        return start, end
    count = np.bincount(step, minlength=len(start))
    last = np.full(len(start), np.iinfo(np.int64).min)
    np.maximum.at(last, step, work.end_ns[whole])
    before = _work_before(work, whole[step == 0], whole, int(start[0]))
    for i in range(len(start)):
        start[i] = max(before, int(start[i]))
        before = end[i] = max(int(start[i]), int(end[i]), int(last[i]))
    kept = int(np.flatnonzero(count)[-1]) + 1
    if kept > 1 and count[kept - 2] * _FEWER > count[kept - 1]:
        kept -= 1
    return start[:kept], end[:kept]


def _work_before(work: OwnedWork, of_first: Int64, of_steps: Int64, begin: int) -> int:
    """When work launched in no step ended that was done before the first step's own; at least the step's begin."""
    if not len(of_first):
        return begin
    others = np.ones(len(work), np.bool_)
    others[of_steps] = False
    ends = work.end_ns[others & work.counts]
    return max(begin, int(ends[ends < work.start_ns[of_first].min()].max(initial=begin)))
