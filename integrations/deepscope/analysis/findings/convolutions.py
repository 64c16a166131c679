"""Convolutions that convert layouts, or look for algorithms again and again (DS017, DS023)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, distinct, mask_of, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import tries_algorithms
from deepscope.analysis.findings.recorded_collectives import share_of_wall
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding
from deepscope.records.findings import severity_of
from deepscope.trace.arrays import distinct_places, distinct_values, nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import ACCUMULATES_GRADIENT, CONVOLUTIONS, evaluates

_WORTH_ON_CPU = 0.05
"""A line is named there from this share of the wall time on: convolutions convert for themselves, too, in either
format."""

_FUNCTIONS = ("conv", "conv_transpose")

# cuDNN's `nchwToNhwcKernel` and `nhwcToNchwKernel`, MIOpen's `transpose_NCHW2CNHW_V2_2D_WG_off64` and
# `batched_transpose_32x32_half`.
_CONVERSION = re.compile(r"nchwToNhwc|nhwcToNchw|transpose_[NC]{2}HW2[NC]{2}HW|batched_transpose_\d+x\d+")


def is_conversion(kernel: str) -> bool:
    """Whether a kernel of cuDNN or MIOpen does nothing but convert a tensor's memory format."""
    return _CONVERSION.search(kernel) is not None


def _find_layout_conversions(facts: Facts) -> Iterator[Finding]:
    location, spent, calls = _of_device(facts) if facts.has_device else _of_cpu(facts)
    if not len(location):
        return
    converting = by_line(location, facts.lines, spent)
    spent_of_wall = share_of_wall(facts, converting)
    count = by_line(location, facts.lines, calls)
    worth_ns = LAYOUT_CONVERSIONS.worth_ns(facts) if facts.has_device else max(_WORTH_ON_CPU * facts.wall_ns, 1)
    worth = spent_of_wall >= worth_ns
    for line in np.flatnonzero(worth & ~_has_no_other_format(facts)).tolist():
        yield LAYOUT_CONVERSIONS.finding(
            facts,
            location=line,
            message="tensors are converted from one memory format to the other around convolutions",
            evidence={
                "converting_ns": int(converting[line]),
                **facts.counted("conversions", int(count[line])),
            },
            saving_ns=0,
            severity=severity_of(int(spent_of_wall[line]), facts.wall_ns),
            remedy="Keep model and input in one format: `model.to(memory_format=torch.channels_last)`, and the input "
            "`.to(memory_format=torch.channels_last)` or as it is loaded. `deepscope try DS017` tells which is faster.",
        )


def _has_no_other_format(facts: Facts) -> Mask:
    """Lines that convolve in one dimension alone, or all lines if none does else; shape (lines + 1,).

    `channels_last` is for tensors of four and five dimensions.
    """
    in_one, in_more = (_convolving(facts, sizes) for sizes in ("1", "23"))
    return np.asarray((in_one | (in_one.any() & ~in_more.any())) & ~in_more)


def _convolving(facts: Facts, sizes: str) -> Mask:
    """Which lines call convolutions in so many dimensions; shape (lines + 1,)."""
    calls = [facts.operators_named(f"aten::{name}{size}d") for name in _FUNCTIONS for size in sizes]
    return by_line(facts.attribution.owners.location[np.concatenate(calls)], facts.lines) > 0


def _of_device(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """The line, the time and the number (1) of each conversion on the device: a kernel of its own, or torch's copy."""
    work, trace = facts.work, facts.trace
    rows = np.flatnonzero(facts.analysis.counted & (work.kind == Kind.KERNEL))
    names = trace.events.name[work.event[rows]]
    table = np.zeros(len(trace.strings) + 1, np.bool_)
    for name in distinct(names, len(trace.strings)):
        table[name] = is_conversion(trace.strings[name])
    copies = facts.marked(_copies(facts))
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
    return location, facts.cost_ns(copies), np.ones(len(copies), np.int64)


def _copies(facts: Facts) -> Int64:
    """The calls (events, ascending) in or right behind convolutions that copy for the format's sake."""
    operators, parent = facts.attribution.operators, facts.attribution.calls.parent
    asked = facts.operators_named("aten::contiguous")
    convolutions = named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), CONVOLUTIONS.__contains__)
    around = pick(operators.nodes, operators.caller[operators.around[asked]])
    asked = asked[(around >= 0) & convolutions[around]]
    copies = facts.operators_named("aten::clone")
    copied = distinct_values(nearest_to(copies, parent, facts.marked(asked)))
    return facts.topmost(facts.marked(np.append(copied[copied >= 0], _gathered(facts))))


def _gathered(facts: Facts) -> Int64:
    """The copies of weights' gradients whose format is not the weight's, as they are gathered.

    torch/csrc/autograd/functions/accumulate_grad.h keeps a gradient as it is if its strides are the parameter's. Here
    the engine's span of the convolution comes just before.
    """
    trace, events, parent = facts.trace, facts.trace.events, facts.attribution.calls.parent
    spans = facts.backward_nodes
    spans = spans[np.lexsort((events.start_ns[spans], events.thread[spans]))]
    convolutions, gathers = (
        named(trace, facts.marked(spans), partial(evaluates, node))[spans]
        for node in ("ConvolutionBackward0", ACCUMULATES_GRADIENT)
    )
    behind = spans[np.flatnonzero(gathers & np.append(False, convolutions)[: len(spans)])]
    anew = facts.operators_named("aten::new_empty_strided")
    above = nearest_to(anew, parent, facts.marked(behind))
    return distinct_values(above[above >= 0])


LAYOUT_CONVERSIONS = Rule("DS017", "Memory formats converted around convolutions", _find_layout_conversions)


STEPS = 2
"""In so many steps at least a line must search: what the first one finds is kept for its shapes."""

_REMEDY = (
    "Give convolutions inputs of few shapes (pad to a few sizes, `drop_last=True`), or let none be tried out: "
    "`torch.backends.cudnn.benchmark = False`{option}."
)
_LIGHTNING = " (`Trainer(benchmark=False)`)"


def _find_changing_shapes(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or tries_algorithms(facts.trace) is False:
        return
    found = facts.searches
    found = found[_first_of_shapes(facts, found)]
    step = facts.attribution.training.steps.of(facts.trace.events.start_ns[found])
    location = facts.attribution.owners.location[found]
    recurs = _in_steps(location[step >= 0], step[step >= 0], facts.lines) >= STEPS
    inside = facts.analysis.window.locate(facts.trace.events.start_ns[found]) >= 0
    found, location = found[inside], location[inside]
    spent = by_line(location, facts.lines, _searching_ns(facts, found))
    count = by_line(location, facts.lines)
    for line in np.flatnonzero(recurs & (spent >= CHANGING_SHAPES.worth_ns(facts))).tolist():
        place = line if line < facts.lines else -1
        evidence: Evidence = {
            "searching_ns": int(spent[line]),
            **facts.counted("searches", int(count[line])),
        }
        if shapes := _shapes(facts, found[location == place]):
            evidence["shapes"] = shapes
        yield CHANGING_SHAPES.finding(
            facts,
            location=place,
            message="convolutions meet new shapes step after step and try out algorithms for each, and all else waits",
            evidence=evidence,
            saving_ns=int(spent[line]),
            remedy=_REMEDY.format(option=_LIGHTNING if "lightning" in facts.trace.header.versions else ""),
        )


def _first_of_shapes(facts: Facts, found: Int64) -> Mask:
    """Which searches are the first for their shapes, as far as these are known; what is forgotten is another matter."""
    events = facts.trace.events
    known = events.shapes[found] >= 0
    _, first = np.unique(np.stack((events.name[found], events.shapes[found])), axis=1, return_index=True)
    return mask_of(first, len(found)) | ~known


def _in_steps(location: Int64, step: Int64, lines: int) -> Int64:
    """In how many steps each line occurs; shape (lines + 1,)."""
    width = int(step.max(initial=0)) + 1
    return by_line(distinct_values((location + 1) * width + step) // width - 1, lines)


def _searching_ns(facts: Facts, found: Int64) -> Int64:
    """How long each search takes, from when the device has done what was queued before it; shape of `found`."""
    events, work = facts.trace.events, facts.work
    start, end = events.start_ns[found], events.end_ns[found]
    order = np.argsort(work.launch_ns, kind="stable")
    done = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(work.end_ns[order]))
    before = done[np.searchsorted(work.launch_ns[order], start)]
    return np.asarray(end - np.clip(before, start, end))


def _shapes(facts: Facts, found: Int64) -> int:
    """How many different shapes were searched for; 0 where they are not recorded."""
    shapes = facts.trace.events.shapes[found]
    return len(distinct_places(shapes[shapes >= 0])[0])


CHANGING_SHAPES = Rule("DS023", "Algorithms sought for changing shapes", _find_changing_shapes)
