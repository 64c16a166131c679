"""Builds the Profile of a trace: runs the analyses and puts their numbers into records."""

from __future__ import annotations

from deepscope.analysis.analysis import analyse
from deepscope.analysis.findings import find_all
from deepscope.analysis.ownership.attribution import attribute
from deepscope.analysis.tables.call_tree import call_tree
from deepscope.analysis.tables.critical import critical_path_table
from deepscope.analysis.tables.framework import framework_table
from deepscope.analysis.tables.functions import function_table
from deepscope.analysis.tables.kernels import kernel_table
from deepscope.analysis.tables.library_lines import library_line_table
from deepscope.analysis.tables.lines import line_table, no_line
from deepscope.analysis.tables.memory import memory_table
from deepscope.analysis.tables.modules import module_table
from deepscope.analysis.tables.operators import operator_table
from deepscope.analysis.tables.parts import all_parts, part_table
from deepscope.analysis.tables.phases import phase_table
from deepscope.analysis.tables.steps import step_table
from deepscope.analysis.tables.totals import resolved, totals
from deepscope.analysis.tables.trace_info import trace_info
from deepscope.analysis.tables.why import why_of_lines, why_of_operators, work_causes
from deepscope.errors import OptionError
from deepscope.records import Profile, SourceFile
from deepscope.trace.model import Trace
from deepscope.trace.source_lines import source_lines

__all__ = ["build_profile"]


def build_profile(trace: Trace, *, step: int | None = None) -> Profile:
    """The Profile of a trace, or of one of its steps.

    Raises:
        OptionError: the trace has no step of this number; the message lists those that it has.
    """
    attribution = attribute(trace)
    if step is not None and step not in attribution.training.steps.number:
        known = ", ".join(map(str, attribution.training.steps.number.tolist()))
        raise OptionError("step", step, f"no such step; it has {known or 'no steps'}")
    analysis = analyse(attribution, step)
    files = _files(trace)
    texts = {path: source_lines(file.text) for path, file in files.items() if file.text is not None}
    causes = work_causes(analysis)
    lines, position = line_table(analysis, texts, why_of_lines(analysis, causes))
    tree, number = call_tree(analysis, position)
    all_of, all_places = all_parts(analysis)
    parts, places = part_table(all_of, all_places, attribution.paths, number)
    work = attribution.work
    return Profile(
        metric=work.metric,
        trace=trace_info(trace, attribution.scopes.source, has_device=work.metric == "device"),
        totals=totals(analysis),
        lines=lines,
        no_line=no_line(analysis.columns),
        resolved=resolved(analysis),
        functions=function_table(analysis),
        framework=framework_table(analysis),
        modules=module_table(analysis),
        operators=operator_table(
            trace,
            attribution.operators,
            work,
            flops=analysis.flops,
            extent=analysis.extent,
            whys=why_of_operators(analysis, causes),
        ),
        kernels=kernel_table(trace, work, analysis.operator, analysis.extent),
        steps=step_table(analysis),
        phases=phase_table(analysis),
        memory=memory_table(analysis),
        critical=critical_path_table(analysis),
        call_tree=tree,
        library_lines=library_line_table(analysis, all_of, all_places),
        parts=parts,
        places=places,
        findings=find_all(analysis),
        files=files,
        step=step,
    )


def _files(trace: Trace) -> dict[str, SourceFile]:
    return {file.path: SourceFile(sha256=file.sha256, text=file.text) for file in trace.header.texts()}
