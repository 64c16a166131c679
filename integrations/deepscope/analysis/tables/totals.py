"""The whole of the trace or the step, and how far its device time could be traced."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.idle import idle
from deepscope.analysis.numbers.window_cost import recording_ns
from deepscope.analysis.ownership.owned_work import busy_with
from deepscope.records import Resolved, Totals


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
        idle_ns=sum(one.total_ns for one in idle(work, analysis.window)),
        wall_ns=analysis.window.total_ns,
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
