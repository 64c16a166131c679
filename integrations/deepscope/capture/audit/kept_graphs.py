"""From what was watched: results that are kept with their graphs, though the backward pass is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.unused_graphs import trained
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import KeptGraphs


def kept_graphs(watch: Watch, places: Places) -> list[KeptGraphs]:
    """Of the first step, by line: what has a graph still when the next step has ended, or is a part of a longer one."""
    operations, paths = watch.flow.operations, watch.paths.paths
    used_up = trained(watch)
    kept = {number for number in used_up if operations[number].step == 0 and _has_graph(operations[number])}
    kept -= {source for number in kept for source in operations[number].graph_inputs}  # whose graph others hold
    kept |= _made_longer(operations, used_up)
    found: dict[int, list[int]] = defaultdict(list)
    for number in sorted(kept):
        if path := paths[operations[number].call.path]:
            found[places.number_of(path[-1])].append(number)
    return [
        KeptGraphs(place=place, results=len(numbers), name=operations[numbers[0]].name)
        for place, numbers in found.items()
    ]


def _has_graph(one: Operation) -> bool:
    tensor = one.result() if one.result is not None else None
    return tensor is not None and tensor.grad_fn is not None


def _made_longer(operations: Sequence[Operation], used_up: Set[int]) -> set[int]:
    """The operations of the first step from which the same line's go on in the second one, as in a sum of losses."""
    crossing: set[int] = set()
    found = set()
    for number, one in enumerate(operations):
        if one.step == 0 or one.node < 0:
            continue
        if any(source in crossing or operations[source].step == 0 for source in one.graph_inputs):
            crossing.add(number)
            if number in used_up:
                found |= _same_before(operations, number)
    return found


def _same_before(operations: Sequence[Operation], number: int) -> set[int]:
    """What an operation goes on from that the same line called in the step before."""
    same = (operations[number].call.path, operations[number].name)
    left, seen = [number], set[int]()
    while left:
        for source in operations[left.pop()].graph_inputs - seen:
            seen.add(source)
            left.append(source)
    return {
        one for one in seen if operations[one].step == 0 and (operations[one].call.path, operations[one].name) == same
    }
