"""From what was watched: the lines that compute the same in each step, by function."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import CodeType

from deepscope.capture.audit.operator_uses import operator_uses
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import SameWork


def same_work(watch: Watch, places: Places) -> list[SameWork]:
    """Of the first step."""
    operations, paths = watch.flow.operations, watch.paths.paths
    same = {number for number in watch.constants.same() if paths[operations[number].call.path]}
    by_function: dict[CodeType, list[int]] = defaultdict(list)
    for number in same:
        by_function[paths[operations[number].call.path][-1][0]].append(number)
    found = []
    for code, numbers in by_function.items():
        weights: Counter[int] = Counter()
        for number in numbers:
            one = operations[number]
            weights[places.number_of(paths[one.call.path][-1])] += one.result_bytes + 1
        forward = [
            (number, one)
            for number, one in enumerate(operations)
            if one.step == 0 and one.pass_number < 0 and paths[one.call.path] and paths[one.call.path][-1][0] is code
        ]
        found.append(
            SameWork(
                place=weights.most_common(1)[0][0],
                result_bytes=sum(operations[number].result_bytes for number in numbers),
                operators=operator_uses(watch, places, forward, same),
            )
        )
    return sorted(found, key=lambda one: -one.result_bytes)
