"""From what was watched: forward work for which autograd kept a graph that no backward pass came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set

from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import Places, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedGraph


def unused_graphs(watch: Watch, work: StepWork, places: Places, *, used_up: Set[int]) -> list[UnusedGraph]:
    """Of the first step: where a graph is begun that ends without a backward pass; `used_up`: what `trained` finds."""
    paths, operations = watch.paths.paths, watch.flow.operations
    graph = [number for number, one in enumerate(operations) if one.node >= 0 and one.computes]
    unused = _unused(watch, graph, used_up)
    mine = [(number, paths[one.call.path]) for number, one in work.forward if one.node >= 0 and one.computes]
    beginnings = wholly((path, number in unused) for number, path in mine)
    groups: dict[int, set[int]] = defaultdict(set)
    for number, path in mine:
        if path in beginnings:
            groups[places.number_of(outermost_of(path, beginnings)[-1])].add(number)
    found = [
        UnusedGraph(
            place=place,
            result_bytes=sum(operations[number].result_bytes for number in group),
            operators=work.uses(group),
        )
        for place, group in groups.items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def _unused(watch: Watch, graph: Sequence[int], used_up: Set[int]) -> set[int]:
    """The operations no graph of which was or will be gone through, and that no such graph leads on from.

    What is computed from the outputs of a model that is trained, and not differentiated (a metric), is none of these.
    """
    numbers = set(graph)
    return numbers - watch.flow.reaching(numbers.intersection(watch.flow.alive()), by_graphs=True) - used_up


def trained(watch: Watch) -> set[int]:
    """The operations that a backward pass came to, and those that have nodes and go on from these."""
    found: set[int] = set()
    for number, one in enumerate(watch.flow.operations):
        if one.node >= 0 and (watch.nodes.is_reached(one.node) or not found.isdisjoint(one.graph_inputs)):
            found.add(number)
    return found
