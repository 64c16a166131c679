"""From what was watched: results that are kept with their graphs, though the backward pass is over."""

from __future__ import annotations

from collections import defaultdict

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.unused_graphs import trained
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import KeptGraphs


def kept_graphs(watch: Watch, places: Places) -> list[KeptGraphs]:
    """Of the first step, by line: what has a graph still when the next step has ended, or what that goes on from."""
    operations, paths = watch.flow.operations, watch.paths.paths
    kept = {
        number
        for number in trained(watch)
        if operations[number].step == 0
        and paths[operations[number].call.path]
        and (number in watch.continued or _is_kept(operations[number]))
    }
    inner = {source for number in kept for source in operations[number].inputs & kept}
    found: dict[int, list[int]] = defaultdict(list)
    for number in sorted(kept - inner):  # the graph of these holds the others
        found[places.number_of(paths[operations[number].call.path][-1])].append(number)
    return [
        KeptGraphs(place=place, results=len(numbers), name=operations[numbers[0]].name)
        for place, numbers in found.items()
    ]


def _is_kept(one: Operation) -> bool:
    tensor = one.result() if one.result is not None else None
    return tensor is not None and tensor.grad_fn is not None
