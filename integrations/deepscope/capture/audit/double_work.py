"""From what was watched: the operators that compute with 64 bits, and the line where that begins."""

from __future__ import annotations

from collections import Counter

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import operator_uses
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import DoubleWork


def double_work(watch: Watch, places: Places) -> list[DoubleWork]:
    """Of the first step; one row, or none."""
    paths = watch.paths.paths
    operations = [
        (number, one) for number, one in enumerate(watch.flow.operations) if one.step == 0 and paths[one.forward_path]
    ]
    double = {number for number, one in operations if one.is_double}
    if not double:
        return []
    forward, backward = ([pair for pair in operations if (pair[1].pass_number >= 0) == side] for side in (False, True))
    first = _first(forward, double)
    return [
        DoubleWork(
            place=places.number_of(paths[first.forward_path][-1]),
            result_bytes=sum(one.result_bytes for number, one in operations if number in double),
            lines=len(Counter(paths[one.forward_path][-1] for number, one in operations if number in double)),
            operators=operator_uses(watch, places, forward, double),
            backward=operator_uses(watch, places, backward, double),
        )
    ]


def _first(forward: list[tuple[int, Operation]], double: set[int]) -> Operation:
    """The one that makes 64 bits of fewer, if there is one, else the first of all."""
    mine = [one for number, one in forward if number in double]
    return next((one for one in mine if one.widens), mine[0])
