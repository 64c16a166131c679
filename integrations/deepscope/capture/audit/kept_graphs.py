"""From what was watched: results that are kept with their graphs, though the backward pass is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set

from deepscope.capture.audit.flow import Flow, Operation
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import KeptGraphs


def kept_graphs(watch: Watch, places: Places, *, used_up: Set[int]) -> list[KeptGraphs]:
    """Of the first step, by line: what has a graph still when the next step has ended, or is a part of a longer one."""
    operations, paths = watch.flow.operations, watch.paths.paths
    kept = {number for number in used_up if operations[number].step == 0 and _has_graph(operations[number])}
    kept -= {source for number in kept for source in operations[number].graph_inputs}  # whose graph others hold
    kept |= _made_longer(watch.flow, used_up)
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


def _made_longer(flow: Flow, used_up: Set[int]) -> set[int]:
    """The operations of the first step from which the same line's go on in the second one, as in a sum of losses."""
    crossing: set[int] = set()
    found = set()
    for number, one in enumerate(flow.operations):
        if one.step == 0 or one.node < 0:
            continue
        if any(source in crossing or flow.operations[source].step == 0 for source in one.graph_inputs):
            crossing.add(number)
            if number in used_up:
                found |= _same_before(flow, number)
    return found


def _same_before(flow: Flow, number: int) -> set[int]:
    """What an operation goes on from that the same line called in the step before."""
    operations = flow.operations
    same = (operations[number].call.path, operations[number].name)
    before = flow.reaching([number], by_graphs=True)
    return {
        one for one in before if operations[one].step == 0 and (operations[one].call.path, operations[one].name) == same
    }
