"""Calls that are known by their operators or their text: clipping, checks for NaN, searches for algorithms."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, mask_of, named, of_kind
from deepscope.analysis.findings.source_text import SourceFile, SourceTexts
from deepscope.analysis.ownership.locations import Scopes
from deepscope.trace.arrays import distinct_values, nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import is_backward_root

MANY = 20
"""A call goes from gradient to gradient if it starts so many of these operators, and none for many at once."""
_ONE_BY_ONE = frozenset(
    {"aten::linalg_vector_norm", "aten::norm", "aten::mul_", "aten::clamp_", "aten::clamp_min_", "aten::clamp_max_"}
)
_FRAME = "torch/nn/utils/clip_grad.py("
"""How torch's own stacks name the functions: `…/torch/nn/utils/clip_grad.py(168): clip_grad_norm_`."""
_ACTION = "configure_gradient_clipping"
"""Lightning's action around its own clipping, the last word of its span's name."""
_FUNCTIONS = frozenset({"clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_gradients"})
"""torch's, and the methods of FSDP, accelerate and Fabric."""


def is_clip(function: str) -> bool:
    """Whether a dotted name is that of a function that clips gradients."""
    return function.rpartition(".")[2] in _FUNCTIONS


@dataclass(frozen=True, slots=True)
class Clipping:
    """Where gradients are clipped."""

    calls: Int64
    """Spans of clipping (events): frames and actions, or runs of lines that call it."""
    reads: Int64
    """Runs of lines (events) that read the norm that such a call returned, and nothing else."""
    loops: Mask
    """Which of `calls` go from gradient to gradient; shape (n,)."""


def find_clipping(trace: Trace, texts: SourceTexts, scopes: Scopes, parent: Int64) -> Clipping:
    """Where gradients are clipped; `parent` is the event that encloses each one on its thread, shape (n,)."""
    calling, reading = _lines(texts, scopes)
    spans = named(trace, of_kind(trace, Kind.PYTHON_FUNCTION), lambda name: _FRAME in name)
    spans |= named(trace, of_kind(trace, Kind.ANNOTATION), lambda name: name.endswith(_ACTION))
    spans |= calling[scopes.location]
    loops = np.zeros(len(trace.events), np.bool_)
    calls = np.flatnonzero(spans)
    if len(calls):
        loops[_one_by_one(trace, calls, spans, parent)] = True
    return Clipping(calls, np.flatnonzero(reading[scopes.location]), loops)


def _one_by_one(trace: Trace, calls: Int64, spans: Mask, parent: Int64) -> Int64:
    """The calls (events) that go from gradient to gradient."""
    operators = of_kind(trace, Kind.OPERATOR)
    own = np.flatnonzero(named(trace, operators, _ONE_BY_ONE.__contains__))
    together = np.flatnonzero(named(trace, operators, lambda name: name.startswith("aten::_foreach_")))
    count = np.zeros(len(spans), np.int64)
    for events, weight in ((own, 1), (together, -len(spans))):
        above = nearest_to(events, parent, spans)
        np.add.at(count, above[above >= 0], weight)
    return np.asarray(calls[count[calls] >= MANY])


def _lines(texts: SourceTexts, scopes: Scopes) -> tuple[Mask, Mask]:
    """Which locations call a function that clips, and which read what it returned; both of shape (lines + 1,)."""
    found = np.zeros((2, len(scopes.locations) + 1), np.bool_)
    files = {path: texts.file(path) for path in texts.with_word("clip_grad")}
    for row, ask in enumerate((SourceFile.lines_calling, SourceFile.lines_reading)):
        lines = {(path, line) for path, file in files.items() for line in ask(file, is_clip)}
        found[row, :-1] = [one.exact and (one.file, one.line) in lines for one in scopes.locations]
    return found[0], found[1]


ASKS_NAN = "aten::isnan"
"""The first operator of each check."""
_NAN_CHECKS = frozenset({ASKS_NAN, "aten::_is_any_true", "aten::is_nonzero", "aten::item"})


def anomaly_checks(trace: Trace, parent: Int64) -> Int64:
    """Such operators (events, ascending); `parent` is the event that encloses each one on its thread, shape (n,).

    torch/csrc/autograd/engine.cpp calls `isnan(gradient)._is_any_true().item()` behind the node, in its own span. A
    hook of the user's may read a value there, too; nobody but the engine asks for NaN before.
    """
    operators = of_kind(trace, Kind.OPERATOR)
    asks = np.flatnonzero(named(trace, operators, ASKS_NAN.__eq__) & (parent >= 0))
    if not len(asks):
        return asks
    engine = named(trace, operators, is_backward_root)
    checked = mask_of(parent[asks], len(parent)) & engine
    return np.flatnonzero(named(trace, operators, _NAN_CHECKS.__contains__) & (parent >= 0) & checked[parent])


_TIMES = re.compile(r"(?:cuda|hip)EventElapsedTime\w*")
"""The call that reads how long a candidate took: `time_sorted_plan` of cudnn_frontend_find_plan.h, and
`cudnnFindConvolution…AlgorithmEx` before. Nothing else in a convolution asks that."""
_UNNAMED = re.compile("INVALID")
"""What Kineto calls a function that is newer than it, as CUDA 13's of that name is for torch 2.11."""
_AWAITS_CANDIDATE = re.compile(r"(?:cuda|hip)EventSynchronize")
_CONVOLUTION = re.compile(r"aten::\w*conv\w*")


def convolution_searches(trace: Trace, parent: Int64) -> Int64:
    """The outermost convolutions (events, ascending) that search; `parent` encloses each event on its thread."""
    operators, runtime = of_kind(trace, Kind.OPERATOR), of_kind(trace, Kind.RUNTIME)
    timed, unnamed, awaited = (
        np.flatnonzero(named(trace, runtime, one.fullmatch)) for one in (_TIMES, _UNNAMED, _AWAITS_CANDIDATE)
    )
    if not len(timed) and not len(unnamed):
        return timed
    convolutions = named(trace, operators, _CONVOLUTION.fullmatch)

    def around(events: Int64) -> Int64:
        found = distinct_values(nearest_to(events, parent, convolutions))
        return found[found >= 0]

    found = np.union1d(around(timed), np.intersect1d(around(unnamed), around(awaited)))
    while len(found):
        above = nearest_to(pick(parent, found), parent, convolutions)
        if not (above >= 0).any():
            break
        found = distinct_values(np.where(above >= 0, above, found))
    return found
