"""Where gradients are clipped: calls of torch's functions, or lines that call them or read what they return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.findings.source_text import lines_calling, lines_reading
from deepscope.analysis.ownership.locations import Scopes
from deepscope.trace.arrays import nearest_to
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

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


def find_clipping(trace: Trace, scopes: Scopes, parent: Int64) -> Clipping:
    """Where gradients are clipped; `parent` is the event that encloses each one on its thread, shape (n,)."""
    calling, reading = _lines(trace, scopes)
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


def _lines(trace: Trace, scopes: Scopes) -> tuple[Mask, Mask]:
    """Which locations call a function that clips, and which read what it returned; both of shape (lines + 1,)."""
    found = np.zeros((2, len(scopes.locations) + 1), np.bool_)
    files = {file.path for file in trace.header.texts() if file.text and "clip_grad" in file.text}
    for row, ask in enumerate((lines_calling, lines_reading)):
        lines = {(file, line) for file in files for line in ask(trace, file, is_clip)}
        found[row, :-1] = [one.exact and (one.file, one.line) in lines for one in scopes.locations]
    return found[0], found[1]
