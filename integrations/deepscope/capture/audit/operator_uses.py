"""Operators by line and name, and how many of them were called for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import OperatorUse


def operator_uses(
    watch: Watch, places: Places, operations: Iterable[tuple[int, Operation]], unused: Set[int]
) -> list[OperatorUse]:
    """Of operations with their numbers, at the lines of which some are `unused`."""
    times: Counter[tuple[int, str]] = Counter()
    in_vain: Counter[tuple[int, str]] = Counter()
    for number, one in operations:
        path = watch.paths.paths[one.forward_path]
        if path:
            key = (places.number_of(path[-1]), one.name)
            times[key] += 1
            in_vain[key] += number in unused
    lines = {place for (place, _), count in in_vain.items() if count}
    return [OperatorUse(*key, count, in_vain[key]) for key, count in times.items() if key[0] in lines]
