"""Operators by line and name, and how many of them were called for nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.places import NumberedPlaces, PathEntry, outermost_of, wholly
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import OperatorUse

Numbered = tuple[int, Operation]
"""An operation with its number."""
CALL, BYTE, _FLOP = 2_500.0, 1 / 8, 1 / 50
"""What one core of a CPU needs about: ns for a call, a byte and a floating-point operation. Only ratios count."""


class StepWork:
    """What was watched of two steps, and the first one's work: forward, what the user's lines called; and backward.

    What data loaders call is no part of it.
    """

    def __init__(self, watch: Watch, places: NumberedPlaces, *, unread_is_used: bool) -> None:
        """`unread_is_used`: code that shows no operator may use results that no operator reads."""
        self.watch = watch
        self.places = places
        self.operations, self.paths = watch.flow.operations, watch.paths.paths
        self._unread_is_used = unread_is_used
        first = [(number, one) for number, one in enumerate(self.operations) if one.step == 0]
        self.forward = [
            (number, one)
            for number, one in first
            if one.pass_number < 0 and self.paths[one.call.path] and not one.call.is_loading
        ]
        self._forward = self._by_line(self.forward)
        self.backward = [(number, one) for number, one in first if one.pass_number >= 0]
        self.readers = watch.flow.readers(
            number for number, one in enumerate(watch.flow.operations) if one.pass_number < 0
        )
        """By operation: those outside of backward passes, of any step, that read its result; ascending."""
        self._backward = self._by_line(self.backward)
        self.live = self.used()
        """The operations whose results somebody needs."""

    def used(self, *, without: Set[int] = frozenset()) -> set[int]:
        """The operations whose results somebody needs; `without`: operations that are no use."""
        flow = self.watch.flow
        given = [number for one in self.watch.gradients.all for number in one.operations]
        kept = flow.kept(unread_is_used=self._unread_is_used)
        return flow.reaching([*(set(flow.sinks()) - without), *kept, *given])

    def place_of(self, number: int) -> int:
        """The number of the line that called an operation."""
        return self.places.number_of(self.paths[self.operations[number].call.path][-1])

    def uses(self, unused: Set[int]) -> list[OperatorUse]:
        """Of the lines of some forward operations, whoever called them, with how many are among these."""
        return self.uses_among(self._at_lines(self._forward, unused), unused)

    def backward_uses(self, forward: Set[int]) -> list[OperatorUse]:
        """The same of backward work: that of calls from where these forward operations were called."""
        calls = {self.operations[number].call.path for number in forward}
        mine = self._at_lines(self._backward, forward)
        behind = {number for number, one in mine if one.forward_path in calls}
        return self.uses_among(mine, behind)

    def backward_uses_of_nodes(self, forward: Set[int], nodes: Set[int]) -> list[OperatorUse]:
        """The same, but of the nodes of these forward operations, and of others with these numbers."""
        chosen = ({self.operations[number].node for number in forward} | nodes) - {-1}
        behind = {number for number, one in self.backward if one.forward_node in chosen}
        return self.uses_among(self.backward, behind)

    def uses_among(
        self, operations: Iterable[Numbered], unused: Set[int], *, half_unused: Set[int] = frozenset()
    ) -> list[OperatorUse]:
        """Of operations with their numbers, at the lines of which some are `unused`, or half of their work is."""
        times: Counter[tuple[int, str]] = Counter()
        in_vain: Counter[tuple[int, str]] = Counter()
        work: dict[tuple[int, str], float] = defaultdict(float)
        work_in_vain: dict[tuple[int, str], float] = defaultdict(float)
        for number, one in operations:
            path = self.paths[one.forward_path]
            if path:
                key = (self.places.number_of(path[-1]), one.name)
                size = CALL + BYTE * one.result_bytes + _FLOP * one.flops
                times[key] += 1
                work[key] += size
                if number in unused or number in half_unused:
                    in_vain[key] += 1
                    work_in_vain[key] += size if number in unused else size / 2
        lines = {place for (place, _), count in in_vain.items() if count}
        return [
            OperatorUse(*key, count, in_vain[key], round(min(work_in_vain[key] / work[key], 1.0), 4))
            for key, count in times.items()
            if key[0] in lines
        ]

    def by_outermost_line(self, chosen: Set[int], such: Set[int]) -> dict[int, set[int]]:
        """Some forward operations by the place of the outermost line below which all that computes is `such`."""
        beginnings = wholly((self.paths[one.call.path], number in such) for number, one in self.forward if one.computes)
        groups: dict[int, set[int]] = defaultdict(set)
        for number, one in self.forward:
            if number in chosen:
                path = outermost_of(self.paths[one.call.path], beginnings)
                groups[self.places.number_of(path[-1])].add(number)
        return groups

    def _by_line(self, operations: Iterable[Numbered]) -> dict[PathEntry, list[Numbered]]:
        found: dict[PathEntry, list[Numbered]] = defaultdict(list)
        for number, one in operations:
            if path := self.paths[one.forward_path]:
                found[path[-1]].append((number, one))
        return found

    def _at_lines(self, by_line: dict[PathEntry, list[Numbered]], numbers: Set[int]) -> list[Numbered]:
        lines = dict.fromkeys(self.paths[self.operations[number].call.path][-1] for number in sorted(numbers))
        return [pair for line in lines for pair in by_line.get(line, ())]
