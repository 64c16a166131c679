"""When a convolution tries out cuDNN's (or MIOpen's) algorithms, as `torch.backends.cudnn.benchmark` has it."""

from __future__ import annotations

import re

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest_to
from deepscope.analysis.algebra.selection import named, of_kind
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

_TIMES = re.compile(r"(?:cuda|hip)EventElapsedTime\w*")
"""The call that reads how long a candidate took: `time_sorted_plan` of cudnn_frontend_find_plan.h, and
`cudnnFindConvolution…AlgorithmEx` before. Nothing else in a convolution asks that."""
_CONVOLUTION = re.compile(r"aten::\w*conv\w*")


def convolution_searches(trace: Trace, parent: Int64) -> Int64:
    """The outermost convolutions (events, ascending) that search; `parent` encloses each event on its thread."""
    operators = of_kind(trace, Kind.OPERATOR)
    timed = np.flatnonzero(named(trace, of_kind(trace, Kind.RUNTIME), _TIMES.fullmatch))
    if not len(timed):
        return timed
    convolutions = named(trace, operators, _CONVOLUTION.fullmatch)
    found = distinct_values(nearest_to(timed, parent, convolutions))
    found = found[found >= 0]
    while len(found):
        above = nearest_to(pick(parent, found), parent, convolutions)
        if not (above >= 0).any():
            break
        found = distinct_values(np.where(above >= 0, above, found))
    return found
