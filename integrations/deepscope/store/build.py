"""Builds the Profile of a trace: runs the analyses and puts their columns into records."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.attribution import Attribution, attribute
from deepscope.analysis.extent import Extent
from deepscope.analysis.idle import idle
from deepscope.analysis.intervals import Intervals
from deepscope.analysis.kernels import kernel_rows
from deepscope.analysis.operator_table import operator_table
from deepscope.analysis.phases import PHASES, phase_of_work
from deepscope.analysis.result import Analysis, analyse
from deepscope.analysis.selection import by_line
from deepscope.analysis.waits import wait_by_line
from deepscope.errors import OptionError
from deepscope.records import Kernel, Operator, Phase, Profile, Resolved, SourceFile, Step, Totals
from deepscope.store.findings import finding_records
from deepscope.store.records import call_tree, function_records, line_records, module_records, no_line_record
from deepscope.store.trace_info import trace_info
from deepscope.trace.model import Trace
from deepscope.trace.source_lines import source_lines

__all__ = ["build_profile"]


def build_profile(trace: Trace, *, step: int | None = None) -> Profile:
    """The Profile of a trace, or of one of its steps.

    Raises:
        OptionError: the trace has no step of this number; the message lists those that it has.
    """
    attribution = attribute(trace)
    if step is not None and step not in attribution.steps.number:
        raise OptionError("step", step, _no_such_step(attribution))
    analysis = analyse(attribution, step)
    files = _files(trace)
    texts = {path: source_lines(file.text) for path, file in files.items() if file.text is not None}
    lines, position = line_records(analysis, texts)
    work = attribution.work
    return Profile(
        metric=work.metric,
        trace=trace_info(trace, attribution.scopes.source, has_device=work.metric == "device"),
        totals=_totals(analysis),
        lines=lines,
        no_line=no_line_record(analysis.columns),
        resolved=_resolved(analysis),
        functions=function_records(analysis),
        modules=module_records(analysis),
        operators=_operators(analysis),
        kernels=_kernels(analysis),
        steps=_steps(analysis),
        phases=_phases(analysis),
        call_tree=call_tree(analysis, position),
        findings=finding_records(analysis),
        files=files,
        step=step,
    )


def _no_such_step(attribution: Attribution) -> str:
    known = attribution.steps.number.tolist()
    listed = f"it has {', '.join(map(str, known))}" if known else "it has no steps"
    return f"no such step; {listed}"


def _files(trace: Trace) -> dict[str, SourceFile]:
    listed = (trace.deepscope or {}).get("files")
    result = {}
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and isinstance(one.get("path"), str):
            text = one.get("text")
            result[one["path"]] = SourceFile(
                sha256=str(one.get("sha256") or ""), text=text if isinstance(text, str) else None
            )
    return result


def _totals(analysis: Analysis) -> Totals:
    attribution, columns = analysis.attribution, analysis.columns
    work = attribution.work
    busy = sum(int(analysis.window.overlap_ns(one.start, one.end).sum()) for one in attribution.busy.values())
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
    if analysis.extent.spans is None:  # Entries without a scope and calls cost, too; in which step, nobody knows.
        sums["recording_ns"] = max(sums["recording_ns"], _stated_recording_ns(analysis.attribution.trace))
    return Totals(
        device_ns=int(work.duration_ns[analysis.counted].sum()),
        busy_ns=busy,
        idle_ns=sum(one.total_ns for one in idle(attribution, analysis.window)),
        wall_ns=analysis.window.total_ns,
        steps=len(analysis.window.start) if analysis.extent.spans is not None else len(attribution.steps),
        **sums,
    )


def _stated_recording_ns(trace: Trace) -> int:
    lines = (trace.deepscope or {}).get("lines")
    stated = lines.get("total_ns") if isinstance(lines, dict) else None
    return stated if type(stated) is int and 0 <= stated < 2**62 else 0


def _resolved(analysis: Analysis) -> Resolved:
    """How far device time came: an exact line, a function (a line by its definition alone), a module, or nowhere."""
    attribution = analysis.attribution
    work = attribution.work
    exact = np.array([one.exact for one in attribution.scopes.locations] + [False])
    location = attribution.work_location
    known = location >= 0
    in_module = np.append(analysis.modules.of_event, -1)[work.node] >= 0
    duration = np.where(analysis.counted, work.duration_ns, 0)
    return Resolved(
        line_ns=int(duration[known & exact[location]].sum()),
        function_ns=int(duration[known & ~exact[location]].sum()),
        module_ns=int(duration[~known & in_module].sum()),
        none_ns=int(duration[~known & ~in_module].sum()),
    )


def _operators(analysis: Analysis) -> list[Operator]:
    table = operator_table(analysis.attribution, analysis.extent)
    strings = analysis.attribution.trace.strings
    order = np.lexsort((-table.total_cpu_ns, -table.self_device_ns))
    return [
        Operator(
            name=strings[table.name[i]],
            calls=int(table.calls[i]),
            self_device_ns=int(table.self_device_ns[i]),
            total_device_ns=int(table.total_device_ns[i]),
            self_cpu_ns=int(table.self_cpu_ns[i]),
            total_cpu_ns=int(table.total_cpu_ns[i]),
            flops=int(table.flops[i]),
        )
        for i in order.tolist()
        if table.calls[i]
    ]


def _kernels(analysis: Analysis) -> list[Kernel]:
    attribution = analysis.attribution
    if attribution.work.metric != "device":
        return []
    strings = attribution.trace.strings
    return [
        Kernel(
            name=strings[row.name],
            kind=row.kind,
            calls=row.calls,
            device_ns=row.device_ns,
            mean_ns=row.device_ns // row.calls,
            max_ns=row.max_ns,
            operator=strings[row.operator] if row.operator >= 0 else "",
        )
        for row in kernel_rows(attribution.trace, attribution.work, analysis.operator, analysis.extent)
    ]


def _steps(analysis: Analysis) -> list[Step]:
    """The steps within the extent."""
    attribution = analysis.attribution
    work, steps = attribution.work, attribution.steps
    busy = attribution.busy.values()
    device = by_line(attribution.work_step, len(steps), work.duration_ns)
    result = []
    for i in range(len(steps)):
        span = Intervals(steps.spans.start[i : i + 1], steps.spans.end[i : i + 1])
        if not analysis.extent.holds(span.start).all():
            continue
        wall = analysis.phases.wall_ns(span).tolist()
        result.append(
            Step(
                number=int(steps.number[i]),
                start_ns=int(span.start[0]),
                duration_ns=span.total_ns,
                device_ns=int(device[i]),
                busy_ns=sum(int(one.overlap_ns(span.start, span.end)[0]) for one in busy),
                idle_ns=sum(one.total_ns for one in idle(attribution, span)),
                wait_ns=int(wait_by_line(attribution, Extent(span)).sum()),
                phases={name: ns for name, ns in zip(PHASES, wall, strict=True) if ns},
            )
        )
    return result


def _phases(analysis: Analysis) -> list[Phase]:
    attribution = analysis.attribution
    wall = analysis.phases.wall_ns(analysis.window).tolist()
    calls = analysis.phases.calls(analysis.extent).tolist()
    phase = phase_of_work(attribution, analysis.phases)[analysis.counted]
    device = by_line(phase, len(PHASES), attribution.work.duration_ns[analysis.counted]).tolist()
    return [
        Phase(name=name, wall_ns=wall[i], device_ns=device[i], calls=calls[i])
        for i, name in enumerate(PHASES)
        if wall[i] or device[i]
    ]
