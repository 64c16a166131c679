"""From what was watched: the operators that compute with 64 bits, and the line where that begins."""

from __future__ import annotations

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
    mine = [one for _, one in operations if one.is_double]
    if not mine:
        return []
    double = {number for number, one in operations if one.is_double}
    forward, backward = ([pair for pair in operations if (pair[1].pass_number >= 0) == side] for side in (False, True))
    # A backward pass casts back what a forward one did.
    candidates = [one for one in mine if one.pass_number < 0] or mine
    first = next((one for one in candidates if one.widens), candidates[0])
    return [
        DoubleWork(
            place=places.number_of(paths[first.forward_path][-1]),
            result_bytes=sum(one.result_bytes for one in mine),
            lines=len({paths[one.forward_path][-1] for one in mine}),
            operators=operator_uses(watch, places, forward, double),
            backward=operator_uses(watch, places, backward, double),
        )
    ]
