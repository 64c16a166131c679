"""Operators by line and name, and how many of them were called for nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set

from deepscope.capture.audit.call_paths import PathEntry
from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import OperatorUse


class ForwardWork:
    """The forward operations of the first step that the user's lines called, outside of data loaders."""

    def __init__(self, watch: Watch, places: Places) -> None:
        self._watch = watch
        self._places = places
        paths = watch.paths.paths
        self.operations = [
            (number, one)
            for number, one in enumerate(watch.flow.operations)
            if one.step == 0 and one.pass_number < 0 and paths[one.call.path] and not one.call.is_loading
        ]
        self._by_line: dict[PathEntry, list[tuple[int, Operation]]] = defaultdict(list)
        for number, one in self.operations:
            self._by_line[paths[one.call.path][-1]].append((number, one))

    def uses(self, unused: Set[int]) -> list[OperatorUse]:
        """Of the lines of `unused`, whoever called them, with how many of their operations are among these."""
        paths, operations = self._watch.paths.paths, self._watch.flow.operations
        lines = dict.fromkeys(paths[operations[number].call.path][-1] for number in sorted(unused))
        mine = [pair for line in lines for pair in self._by_line[line]]
        return operator_uses(self._watch, self._places, mine, unused)


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
