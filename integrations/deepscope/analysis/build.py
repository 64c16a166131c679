"""Builds the Profile of a trace: runs the analyses and puts their numbers into records."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.critical.tables import (
    columns_by_block,
    critical_path_table,
    own_times,
    step_paths,
    whole_columns,
)
from deepscope.analysis.findings import find_all
from deepscope.analysis.ownership.attribution import Attribution, attribute
from deepscope.analysis.tables.collectives import collective_call_table, collective_calls, collective_table
from deepscope.analysis.tables.counters import counter_table
from deepscope.analysis.tables.kernels import kernel_table
from deepscope.analysis.tables.lines import (
    all_parts,
    call_tree,
    framework_table,
    function_table,
    library_line_table,
    line_table,
    no_line,
    part_table,
)
from deepscope.analysis.tables.memory import memory_table
from deepscope.analysis.tables.modules import module_table
from deepscope.analysis.tables.operators import calls_of_operators, detailed_operator_table, operator_table
from deepscope.analysis.tables.overview import overview_table, resolved, totals
from deepscope.analysis.tables.serving import serving_step_table, serving_table
from deepscope.analysis.tables.steps import phase_table, step_table, step_times, steps_per_block
from deepscope.analysis.tables.threads import stream_table, thread_table
from deepscope.analysis.tables.trace_info import trace_info
from deepscope.analysis.tables.why import why_of_lines, work_causes
from deepscope.records import WHOLE, Audit, CriticalPath, Detail, PartOf, Profile, SourceFile, View
from deepscope.records.source_files import source_lines
from deepscope.trace.model import Trace


def build_profile(
    trace: Trace, *, step: int | None = None, phase: str = "", module: str = "", details: Sequence[Detail] = ()
) -> Profile:
    """The same of a trace of which nothing is joined yet, for a `View` with these fields."""
    return profile_of(attribute(trace), View(step=step, phase=phase, module=module, details=tuple(details)))


def profile_of(attribution: Attribution, view: View = WHOLE) -> Profile:
    """The Profile of a trace, or of the part of it that is asked for.

    Raises:
        OptionError: the trace has no step of this number; the message lists those that it has.
    """
    trace, details = attribution.trace, view.details
    whole = analyse(attribution, View(step=view.step))
    analysis = analyse(attribution, view) if view.is_filtered else whole
    files = {file.path: SourceFile(sha256=file.sha256, text=file.text) for file in trace.header.texts()}
    texts = {path: source_lines(file.text) for path, file in files.items() if file.text is not None}
    causes = work_causes(analysis)
    calls = calls_of_operators(analysis, causes, with_kinds=bool(details))
    lines, position = line_table(analysis, texts, why_of_lines(analysis, causes))
    tree, number = call_tree(analysis, position)
    all_of, all_places = all_parts(analysis)
    parts, places = part_table(all_of, all_places, attribution.paths, number)
    calls_of_collectives = collective_calls(attribution, analysis.extent)
    collectives, row_of_call = collective_table(calls_of_collectives, attribution)
    work = attribution.work
    modules = module_table(analysis)
    kernels = kernel_table(analysis, causes)
    operators = operator_table(analysis, calls, causes)
    length = steps_per_block(whole)
    paths = step_paths(whole)
    by_block = columns_by_block(paths, length) if paths else []
    serving_steps = serving_step_table(whole)
    return Profile(
        metric=work.metric,
        trace=trace_info(trace, attribution.scopes.source, has_device=work.metric == "device"),
        totals=totals(analysis),
        lines=lines,
        no_line=no_line(analysis.columns),
        resolved=resolved(analysis),
        functions=function_table(analysis),
        framework=framework_table(analysis),
        modules=modules,
        operators=operators,
        operators_in_detail=detailed_operator_table(analysis, calls, causes, details) if details else [],
        kernels=kernels,
        steps=step_table(
            whole, calls_of_collectives if whole is analysis else collective_calls(attribution, whole.extent)
        ),
        step_times=[] if view.is_filtered else step_times(analysis, position, operators, kernels, modules),
        steps_per_block=length,
        phases=phase_table(whole),
        serving=serving_table(serving_steps),
        serving_steps=serving_steps,
        overview=overview_table(whole),
        threads=thread_table(whole),
        streams=stream_table(whole),
        collectives=collectives,
        collective_calls=collective_call_table(analysis, calls_of_collectives, row_of_call, position),
        counters=counter_table(whole),
        memory=memory_table(whole),
        critical=critical_path_table(paths, whole_columns(by_block)) if paths else CriticalPath(),
        own_times=own_times(paths, by_block, position, length, taken_by_run=whole.beside_plain.taken_by_run)
        if paths and not view.is_filtered
        else None,
        call_tree=tree,
        library_lines=library_line_table(analysis, all_of, all_places),
        parts=parts,
        places=places,
        findings=[]
        if view.is_filtered  # advice looks at all of a step
        else find_all(analysis, serving_steps=len(serving_steps)),
        audit=_audit(trace),
        files=files,
        step=view.step,
        details=view.details,
        part_of=_whole_of(whole, view) if view.is_filtered else None,
    )


def _audit(trace: Trace) -> Audit | None:
    found = trace.header.audit
    if found is None:
        return None
    return Audit(steps=found.steps, operators=found.operators, left_out=found.left_out, hidden=found.hidden)


def _whole_of(whole: Analysis, view: View) -> PartOf:
    return PartOf(
        view=view,
        device_ns=int(whole.attribution.work.duration_ns[whole.counted].sum()),
        self_cpu_ns=int(whole.columns["self_cpu_ns"].sum()),
        wall_ns=whole.unrecorded.total_ns,
    )
