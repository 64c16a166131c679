"""The whole of the trace or the step, and how far its device time could be traced."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.idle import idle
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.owned_work import busy_with
from deepscope.records import Resolved, Totals
from deepscope.trace.format.header import LineAccount
from deepscope.trace.model import Int64, Trace


def totals(analysis: Analysis) -> Totals:
    """The sums over everything within the extent."""
    attribution, columns = analysis.attribution, analysis.columns
    work = attribution.work
    busy = sum(int(analysis.window.overlap_ns(one.start, one.end).sum()) for one in work.busy.values())
    if analysis.extent.work is not None:  # its own work, whenever the device came to it
        busy = sum(one.total_ns for one in busy_with(work, analysis.counted).values())
    sums = {
        name: int(columns[name].sum())
        for name in (
            "wait_ns",
            "launches",
            "operators",
            "peak_bytes",
            "flops",
            "recording_ns",
            "worker_ns",
            "worker_cpu_ns",
        )
    }
    if analysis.is_whole:  # Entries without a scope and calls cost, too; in which step, nobody knows.
        sums["recording_ns"] = max(
            sums["recording_ns"],
            recording_ns(
                attribution.trace, attribution.scopes.locations, columns["python_cpu_ns"], sums["recording_ns"]
            ),
        )
    return Totals(
        device_ns=int(work.duration_ns[analysis.counted].sum()),
        untold_ns=int(work.duration_ns[analysis.counted & work.untold].sum()),
        busy_ns=busy,
        idle_ns=sum(one.total_ns for one in idle(work, analysis.unrecorded)),
        wall_ns=analysis.unrecorded.total_ns,
        added_ns=analysis.window.total_ns - analysis.unrecorded.total_ns,
        behind_ns=analysis.behind_ns if analysis.is_whole else 0,
        steps=analysis.steps,
        **sums,
    )


def resolved(analysis: Analysis) -> Resolved:
    """How far device time came: an exact line, a function (a line by its definition alone), a module, or nowhere.

    Work of compiled code counts as the line that called it: how it is divided beyond that is a policy.
    """
    work = analysis.attribution.work
    exact = np.array([one.exact for one in analysis.attribution.scopes.locations] + [False])
    known = work.location >= 0
    is_exact = np.where(work.called_at >= 0, exact[work.called_at], True)
    in_module = np.append(analysis.modules.of_event, -1)[work.node] >= 0
    duration = np.where(analysis.counted, work.duration_ns, 0)
    return Resolved(
        line_ns=int(duration[known & is_exact].sum()),
        function_ns=int(duration[known & ~is_exact].sum()),
        module_ns=int(duration[~known & in_module].sum()),
        none_ns=int(duration[~known & ~in_module].sum()),
    )


# What recording lines cost a whole window: the recorder's own time, and the slower interpreter.
#
# Below Python 3.12 all Python code runs slower while lines are recorded, which no hook sees. The recorder measures how
# much slower instructions are; the cost follows from that and from how long Python ran outside operators.


_PER_EVENT_NS = 3_000
"""At most so much Python lies behind one event of the hooks. More is code in C, which runs no slower."""
_MOST = 2**62
_GREATEST_SLOWDOWN = 100.0


def recording_ns(trace: Trace, locations: list[Location], python_cpu_ns: Int64, taken_off_ns: int) -> int:
    """The whole cost in nanoseconds; 0 where the trace states nothing.

    `python_cpu_ns` has shape (lines + 1,); `taken_off_ns` is the part of the cost that it no longer holds.
    """
    lines = trace.header.lines
    if not lines.total_ns or not 1 < lines.slowdown <= _GREATEST_SLOWDOWN:
        return lines.total_ns
    share = lines.on_core if 0 < lines.on_core < 1 else 1.0
    # In a trace, time on the core cannot be told from time when another process had it.
    whole_ns = max((int(python_cpu_ns.sum()) + taken_off_ns) * share - lines.total_ns, 0)
    exact = np.array([one.exact for one in locations] + [True])
    lowered_ns = min(int(python_cpu_ns[~exact].sum()) * share, whole_ns)
    slowed_ns = lowered_ns + min(whole_ns - lowered_ns, _events(lines) * _PER_EVENT_NS)
    return min(lines.total_ns + round(slowed_ns * (1 - 1 / lines.slowdown)), _MOST)


def _events(lines: LineAccount) -> int:
    unrecorded = sum(entries for _, entries in lines.over_budget)
    return min(lines.entries + lines.calls + lines.left_alone + unrecorded, _MOST)
