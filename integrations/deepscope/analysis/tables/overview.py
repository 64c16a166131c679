"""The overview: the split of the steps' time, the use of the devices, and why they idle."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.device_use import DeviceUse, device_use
from deepscope.analysis.numbers.gaps_of_streams import GAPS, gaps, spans
from deepscope.analysis.numbers.step_roles import ROLES, dashboard_roles, known_roles
from deepscope.analysis.numbers.step_time import StepTime, step_time
from deepscope.records import OverviewRow


def overview_table(analysis: Analysis) -> list[OverviewRow]:
    """Its rows in the order of the sections; without a device the steps' time alone."""
    attribution = analysis.attribution
    events, work = attribution.trace.events, attribution.work
    known = step_time(events, work, known_roles(attribution))
    dashboard = step_time(events, work, dashboard_roles(attribution))
    rows = _step_rows(_counted(analysis, known), _counted(analysis, dashboard))
    if work.metric != "device":
        return rows
    return rows + _span_rows(analysis) + _device_rows(analysis, known, dashboard)


def _counted(analysis: Analysis, found: StepTime) -> StepTime:
    """The steps within the extent."""
    inside = analysis.extent.holds(found.host_start)
    return StepTime(found.start[inside], found.end[inside], found.host_start[inside], found.parts[inside])


def _step_rows(known: StepTime, dashboard: StepTime) -> list[OverviewRow]:
    (ours, whole), (theirs, their_whole) = (
        (found.parts.sum(axis=0).tolist(), int((found.end - found.start).sum())) for found in (known, dashboard)
    )
    return [
        OverviewRow(
            section="step",
            name=role,
            time_ns=ours[i],
            whole_ns=whole,
            steps=len(known.start),
            dashboard_ns=theirs[i],
            dashboard_whole_ns=their_whole,
            dashboard_steps=len(dashboard.start),
        )
        for i, role in enumerate(ROLES)
        if len(known.start) or len(dashboard.start)
    ]


def _device_rows(analysis: Analysis, known: StepTime, dashboard: StepTime) -> list[OverviewRow]:
    trace, work = analysis.attribution.trace, analysis.attribution.work
    ours, theirs = (
        {
            (one.device, one.name): one
            for one in device_use(trace, work, _counted(analysis, found).window, analysis.counted)
        }
        for found in (known, dashboard)
    )
    rows = []
    for device, name in ours:
        one = ours[device, name]
        other = theirs.get((device, name), DeviceUse(device, name, 0, 0))
        rows.append(
            OverviewRow(
                section="device",
                device=f"device:{device}",
                name=name,
                time_ns=one.time_ns,
                whole_ns=one.whole_ns,
                dashboard_ns=other.time_ns,
                dashboard_whole_ns=other.whole_ns,
            )
        )
    return rows


def _span_rows(analysis: Analysis) -> list[OverviewRow]:
    events, work = analysis.attribution.trace.events, analysis.attribution.work
    which = _work_of_steps(analysis)
    found = spans(work, which)
    between = gaps(events, work, which)
    waits = np.bincount(between.cause, minlength=len(GAPS)) * 0
    np.add.at(waits, between.cause, between.gap_ns)
    parts = (
        ("span", "compute", found.compute_ns, found.whole_ns),
        ("span", "non-compute", found.whole_ns - found.compute_ns - found.idle_ns, found.whole_ns),
        ("span", "idle", found.idle_ns, found.whole_ns),
        ("overlap", "communication", found.overlap_ns, found.communication_ns),
        *(("idle", name, int(ns), int(waits.sum())) for name, ns in zip(GAPS, waits, strict=True)),
    )
    return [
        OverviewRow(section=section, name=name, time_ns=time, whole_ns=whole)  # type: ignore[arg-type]
        for section, name, time, whole in parts
        if whole
    ]


def _work_of_steps(analysis: Analysis) -> Mask:
    """The work that HTA looks at: with two steps or more what was launched before the last one ended; shape (w,).

    Of one step that is chosen, what was launched in it.
    """
    work, steps = analysis.attribution.work, analysis.attribution.training.steps
    if analysis.extent.spans is not None or len(steps) < 2:
        return analysis.counted
    return np.asarray((work.node >= 0) & (work.launch_ns <= steps.spans.end.max()))
