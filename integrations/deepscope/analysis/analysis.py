"""All analyses of one extent of a trace, run once and shared by what is built from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import pick
from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.extent import Extent
from deepscope.analysis.numbers.cpu_time import CpuTime, cpu_time
from deepscope.analysis.numbers.idle import Timeline, timeline
from deepscope.analysis.numbers.lines import Columns, line_columns, path_columns, path_values
from deepscope.analysis.numbers.phases import PhaseTimeline, find_phases
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.locations import compiled_regions
from deepscope.analysis.ownership.modules import ModuleScopes, find_modules
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A trace (or a step of it) with its numbers."""

    attribution: Attribution
    extent: Extent
    window: Intervals
    """Where wall time and idle time are measured."""
    cpu: CpuTime
    columns: Columns
    """By line; shape (lines + 1,), the last place for no line."""
    by_path: Int64
    """Self values by call path, shape (paths, 3): device time, its backward part, CPU time."""
    operator: Int64
    """The operator that launched each piece of work, -1 for none; shape (w,)."""
    modules: ModuleScopes
    phases: PhaseTimeline
    timeline: Timeline | None
    """What the training thread was on in the window; None where there is no device whose idle time that explains."""
    compiled: Int64
    """Lines (ascending) that call compiled functions."""

    @property
    def counted(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which pieces of work were launched within the extent; shape (w,)."""
        return self.extent.holds(self.attribution.work.launch_ns)


def analyse(attribution: Attribution, step: int | None = None) -> Analysis:
    """Runs the analyses over the whole trace or over the step of this number, which must be there."""
    if step is None:
        extent, window = Extent(None), attribution.window
    else:
        window = attribution.steps.chosen(step)
        extent = Extent(window)
    cpu = cpu_time(attribution, extent)
    values = path_values(attribution, cpu, extent)
    lines = len(attribution.scopes.locations)
    line = timeline(attribution, window) if attribution.work.metric == "device" else None
    columns = line_columns(attribution, cpu, extent, window, line)
    columns |= path_columns(attribution, values, np.arange(lines), lines)
    beside_work = columns["idle_ns"] if attribution.work.metric == "device" else columns["python_ns"]
    columns["cost_ns"] = columns["self_device_ns"] + beside_work
    modules = find_modules(attribution)
    regions = compiled_regions(attribution.trace)
    callers = attribution.location[regions]
    return Analysis(
        attribution=attribution,
        extent=extent,
        window=window,
        cpu=cpu,
        columns=columns,
        by_path=values,
        operator=pick(attribution.operators.nodes, pick(attribution.operators.around, attribution.work.node)),
        modules=modules,
        phases=find_phases(attribution, modules),
        timeline=line,
        compiled=distinct_values(callers[callers >= 0]),
    )
