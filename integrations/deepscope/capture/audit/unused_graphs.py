"""From what was watched: forward work for which autograd kept a graph that no backward pass came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import operator_uses
from deepscope.capture.audit.places import Places, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedGraph

Numbered = tuple[int, Operation]


def unused_graphs(watch: Watch, places: Places) -> list[UnusedGraph]:
    """Of the first step: where a graph is begun that ends without a backward pass."""
    paths = watch.paths.paths
    graph = [(number, one) for number, one in enumerate(watch.flow.operations) if one.node >= 0 and one.computes]
    unused = _unused(watch, graph)
    mine = [
        (number, one) for number, one in graph if one.step == 0 and paths[one.call.path] and not one.call.is_loading
    ]
    beginnings = wholly((paths[one.call.path], number in unused) for number, one in mine)
    by_path: dict[int, list[Numbered]] = defaultdict(list)
    for number, one in mine:
        path = paths[one.call.path]
        if number in unused and path in beginnings:
            by_path[places.number_of(outermost_of(path, beginnings)[-1])].append((number, one))
    found = [
        UnusedGraph(
            place=place,
            result_bytes=sum(one.result_bytes for _, one in operations),
            operators=operator_uses(watch, places, operations, unused),
        )
        for place, operations in by_path.items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def _unused(watch: Watch, graph: Sequence[Numbered]) -> set[int]:
    """The operations no graph of which was or will be gone through, and that no such graph leads on from.

    What is computed from the outputs of a model that is trained, and not differentiated (a metric), is none of these.
    """
    operations = watch.flow.operations
    numbers = {number for number, _ in graph}
    left = [number for number in watch.flow.alive() if number in numbers]
    waiting: set[int] = set()
    while left:
        number = left.pop()
        if number not in waiting:
            waiting.add(number)
            left += operations[number].inputs & numbers
    trained: set[int] = set()
    for number, one in graph:
        if watch.nodes.is_reached(one.node) or not trained.isdisjoint(one.inputs):
            trained.add(number)
    return numbers - waiting - trained
