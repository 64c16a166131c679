"""From what was watched: forward work for which autograd kept a graph that no backward pass came to."""

from __future__ import annotations

from collections import defaultdict

from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import Places, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedGraph


def unused_graphs(watch: Watch, places: Places) -> list[UnusedGraph]:
    """Of the first step: where a graph is begun that ends without a backward pass."""
    paths, operations = watch.paths.paths, watch.flow.operations
    graph = [number for number, one in enumerate(operations) if one.node >= 0 and one.computes]
    unused = _unused(watch, graph)
    work = StepWork(watch, places)
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


def _unused(watch: Watch, graph: list[int]) -> set[int]:
    """The operations no graph of which was or will be gone through, and that no such graph leads on from.

    What is computed from the outputs of a model that is trained, and not differentiated (a metric), is none of these.
    """
    operations = watch.flow.operations
    numbers = set(graph)
    left = [number for number in watch.flow.alive() if number in numbers]
    waiting: set[int] = set()
    while left:
        number = left.pop()
        if number not in waiting:
            waiting.add(number)
            left += operations[number].graph_inputs & numbers
    return numbers - waiting - trained(watch)


def trained(watch: Watch) -> set[int]:
    """The operations that a backward pass came to, and those that have nodes and go on from these."""
    found: set[int] = set()
    for number, one in enumerate(watch.flow.operations):
        if one.node >= 0 and (watch.nodes.is_reached(one.node) or not found.isdisjoint(one.graph_inputs)):
            found.add(number)
    return found
