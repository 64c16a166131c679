"""DS017: tensors are converted from one memory format to the other around convolutions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to
from deepscope.analysis.array_ops.selection import Mask, by_line, distinct, named, of_kind
from deepscope.analysis.findings.calls_below import cost_ns, marked, operators_named, topmost
from deepscope.analysis.findings.collectives_seen import share_of_wall
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.records.findings import severity_of
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import CONVOLUTIONS, evaluated_node, is_backward_root

WORTH = 0.02
"""A line is named if converting takes at least this share of the wall time."""

# cuDNN's `nchwToNhwcKernel` and `nhwcToNchwKernel`, MIOpen's `transpose_NCHW2CNHW_V2_2D_WG_off64` and
# `batched_transpose_32x32_half`.
_CONVERSION = re.compile(r"nchwToNhwc|nhwcToNchw|transpose_[NC]{2}HW2[NC]{2}HW|batched_transpose_\d+x\d+")


def is_conversion(kernel: str) -> bool:
    """Whether a kernel of cuDNN or MIOpen does nothing but convert a tensor's memory format."""
    return _CONVERSION.search(kernel) is not None


def _find(facts: Facts) -> Iterator[Finding]:
    location, spent, calls = _of_device(facts) if facts.has_device else _of_cpu(facts)
    if not len(location):
        return
    converting = by_line(location, facts.lines, spent)
    spent_of_wall = share_of_wall(facts, converting)
    count = by_line(location, facts.lines, calls)
    for line in np.flatnonzero(spent_of_wall >= max(WORTH * facts.wall_ns, 1)).tolist():
        yield RULE.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="tensors are converted from one memory format to the other around convolutions",
            evidence={
                "converting_ns": int(converting[line]),
                "conversions": int(count[line]),
                "conversions_per_step": facts.per_step(int(count[line])),
            },
            saving_ns=0,
            severity=severity_of(int(spent_of_wall[line]), facts.wall_ns),
            remedy="Keep model and input in one format: `model.to(memory_format=torch.channels_last)`, and the input "
            "`.to(memory_format=torch.channels_last)` or as it is loaded.",
        )


def _of_device(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """The line, the time and the number (1) of each conversion on the device: a kernel of its own, or torch's copy."""
    work, trace = facts.work, facts.trace
    rows = np.flatnonzero(facts.analysis.counted & (work.kind == Kind.KERNEL))
    names = trace.events.name[work.event[rows]]
    table = np.zeros(len(trace.strings) + 1, np.bool_)
    for name in distinct(names, len(trace.strings)):
        table[name] = is_conversion(trace.strings[name])
    copies = marked(facts, _copies(facts))
    in_copy = nearest_to(work.node[rows], facts.attribution.calls.parent, copies) >= 0
    rows = rows[(table[names] & _of_convolution(facts, work.node[rows])) | in_copy]
    return work.location[rows], work.duration_ns[rows], work.counts[rows].astype(np.int64)


def _of_convolution(facts: Facts, nodes: Int64) -> Mask:
    """Which launches were made for convolutions; where it is not known, the kernel's name says enough."""
    operators = of_kind(facts.trace, Kind.OPERATOR)
    around = nearest_to(nodes, facts.attribution.calls.parent, operators)
    convolutions = named(facts.trace, operators, CONVOLUTIONS.__contains__)
    return np.asarray((around < 0) | (nearest_to(around, facts.attribution.calls.parent, convolutions) >= 0))


def _of_cpu(facts: Facts) -> tuple[Int64, Int64, Int64]:
    copies = _copies(facts)
    location = facts.attribution.owners.location[copies]
    return location, cost_ns(facts, copies), np.ones(len(copies), np.int64)


def _copies(facts: Facts) -> Int64:
    """The calls (events, ascending) in or right behind convolutions that copy for the format's sake."""
    operators, parent = facts.attribution.operators, facts.attribution.calls.parent
    asked = operators_named(facts, "aten::contiguous")
    convolutions = named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), CONVOLUTIONS.__contains__)
    around = pick(operators.nodes, operators.caller[operators.around[asked]])
    asked = asked[(around >= 0) & convolutions[around]]
    copies = operators_named(facts, "aten::clone")
    copied = distinct_values(nearest_to(copies, parent, marked(facts, asked)))
    return topmost(facts, marked(facts, np.append(copied[copied >= 0], _gathered(facts))))


def _gathered(facts: Facts) -> Int64:
    """The copies of weights' gradients whose format is not the weight's, as they are gathered.

    torch/csrc/autograd/functions/accumulate_grad.h keeps a gradient as it is if its strides are the parameter's. Here
    the engine's span of the convolution comes just before.
    """
    trace, events, parent = facts.trace, facts.trace.events, facts.attribution.calls.parent
    spans = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), is_backward_root))
    spans = spans[np.lexsort((events.start_ns[spans], events.thread[spans]))]
    convolutions, gathers = (
        named(trace, marked(facts, spans), partial(_evaluates, node))[spans]
        for node in ("ConvolutionBackward0", "torch::autograd::AccumulateGrad")
    )
    behind = spans[np.flatnonzero(gathers & np.append(False, convolutions)[: len(spans)])]
    anew = operators_named(facts, "aten::new_empty_strided")
    above = nearest_to(anew, parent, marked(facts, behind))
    return distinct_values(above[above >= 0])


def _evaluates(node: str, name: str) -> bool:
    """Whether a span of the engine evaluates a node of this name."""
    return evaluated_node(name) == node


RULE = Rule("DS017", "Memory formats converted around convolutions", _find)
