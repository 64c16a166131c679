"""What each event is to the split of the steps' time: as DeepScope knows it, and as torch-tb-profiler reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, named, of_kind
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.calls import step_events
from deepscope.trace.format.span_names import STEP_PREFIX
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import is_communication_span, is_loading_span

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data loader", "CPU", "other")
"""The parts of a step; where several hold, the first counts."""

# torch_tb_profiler/profiler/trace.py, EventTypeMap, NcclOpNameSet and GlooOpNameSet, of version 0.4.3.
_TYPES = {
    "cpu_op": "operator",
    "operator": "operator",
    "python": "python",
    "runtime": "runtime",
    "kernel": "kernel",
    "memcpy": "memcpy",
    "gpu_memcpy": "memcpy",
    "memset": "memset",
    "gpu_memset": "memset",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
}
_WORDS = ("", *dict.fromkeys(_TYPES.values()))
_COMMUNICATION = frozenset(
    f"{library}:{name}"
    for library in ("nccl", "gloo")
    for name in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
)


@dataclass(frozen=True, slots=True)
class Roles:
    """The events that play each role; masks of shape (n,)."""

    by_name: dict[str, Mask]
    """By the words of `ROLES`, the last excepted."""
    step_start: Int64
    """The steps on the CPU, in the order of their starts; shape (s,)."""
    step_end: Int64


def known_roles(of: Attribution) -> Roles:
    """The roles by what events are, whatever their categories are called."""
    trace, work = of.trace, of.work
    collective = np.zeros(len(trace.events), np.bool_)
    if work.metric == "device":
        collective[work.event[work.collective]] = True
    on_cpu = of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION)
    operators = _operators(trace)
    loading = named(trace, on_cpu, is_loading_span)
    communicating = named(trace, on_cpu, is_communication_span)
    roles = {
        "kernel": of_kind(trace, Kind.KERNEL) & ~collective,
        "memcpy": of_kind(trace, Kind.MEMCPY),
        "memset": of_kind(trace, Kind.MEMSET),
        "communication": collective | communicating,
        "runtime": of_kind(trace, Kind.RUNTIME),
        "data loader": loading,
        "CPU": operators & ~loading & ~communicating,
    }
    spans = of.training.steps.spans
    if len(spans.start):
        return Roles(roles, spans.start, spans.end)
    start, end = _whole(trace, operators | loading)
    return Roles(roles, *((start, end) if len(start) else (of.training.window.start, of.training.window.end)))


def _operators(trace: Trace) -> Mask:
    """Operators, and annotations that old recorders write as such (`Optimizer.step#…`); steps left out."""
    words = {
        code
        for code in distinct(trace.events.category, len(trace.strings))
        if _TYPES.get(trace.strings[code].lower()) in {"operator", "python"}
    }
    annotations = of_kind(trace, Kind.ANNOTATION) & np.isin(trace.events.category, list(words))
    return np.asarray(of_kind(trace, Kind.OPERATOR) | (annotations & ~step_events(trace)))


def dashboard_roles(of: Attribution) -> Roles:
    """The roles as torch-tb-profiler gives them, by the categories and names that it knows.

    Calls of the runtime are those of the category `Runtime`, annotations count as steps and as five collectives alone,
    and a kernel communicates if it has the `External id` of one of these.
    """
    trace = of.trace
    events, strings = trace.events, trace.strings
    table = np.zeros(len(strings) + 1, np.int8)
    for code in distinct(events.category, len(strings)):
        table[code] = _WORDS.index(_TYPES.get(strings[code].lower(), ""))
    type_of = table[events.category]

    def typed(*words: str) -> Mask:
        return np.asarray(np.isin(type_of, [_WORDS.index(word) for word in words]))

    of_lightning = trace.metadata.get("Framework") == "pytorch-lightning"
    left_out = named(trace, typed("operator"), lambda name: of_lightning and name.startswith("[pl]["))
    steps = named(trace, typed("operator", "annotation"), lambda name: name.startswith(STEP_PREFIX))
    operators = typed("operator", "python") & ~steps & ~left_out
    communicating = named(trace, operators | typed("annotation"), _COMMUNICATION.__contains__)
    loading = named(trace, operators & ~typed("python"), is_loading_span)
    kernels = typed("kernel")
    ids = events.external_id[communicating]
    collective = kernels & np.isin(events.external_id, ids) if len(ids) else np.zeros(len(events), np.bool_)
    roles = {
        "kernel": kernels & ~collective,
        "memcpy": typed("memcpy"),
        "memset": typed("memset"),
        "communication": collective | communicating,
        "runtime": typed("runtime"),
        "data loader": loading,
        "CPU": operators & ~loading & ~communicating,
    }
    if not steps.any():
        return Roles(roles, *_whole(trace, operators))
    found = np.flatnonzero(steps)
    found = found[np.argsort(events.start_ns[found], kind="stable")]
    return Roles(roles, events.start_ns[found], events.end_ns[found])


def _whole(trace: Trace, which: Mask) -> tuple[Int64, Int64]:
    """One span, from the first start to the last end of some events; none where there are none."""
    if not which.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    start, end = trace.events.start_ns[which], trace.events.end_ns[which]
    return start.min(keepdims=True), end.max(keepdims=True)
