"""The work of two steps: operators by line and name, how many were called for nothing, and autograd's graph of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from typing import Any

from deepscope.capture import torch_compat
from deepscope.capture.audit.call_paths import CallPath, NumberedPlaces, PathEntry, outermost_of, wholly
from deepscope.capture.audit.flow import Flow, Operation
from deepscope.trace.format.audit import OperatorUse

Numbered = tuple[int, Operation]
"""An operation with its number."""
CALL, BYTE, _FLOP = 2_500.0, 1 / 8, 1 / 50
"""What one core of a CPU needs about: ns for a call, a byte and a floating-point operation. Only ratios count."""


class AutogradGraph:
    """Autograd's nodes of some steps, by their numbers, and the backward passes; no node is kept."""

    def __init__(self) -> None:
        self._paths: dict[int, int] = {torch_compat.next_node_number() - 1: 0}
        """By the number of a node: the path of its forward operator."""
        self._reached: set[int] = set()
        self.passes: list[int] = []
        """By backward pass: the path of the line that called it."""
        self.nodes_of_passes: list[range] = []
        """The numbers of the nodes that each of them made, to be differentiated once more.

        None where a thread of autograd's own computes, which numbers its nodes by itself.
        """

    def made(self, path: int) -> int:
        """A forward operator was called from a path: the number of its new node; -1 where it has none."""
        number = torch_compat.next_node_number() - 1
        if number in self._paths:
            return -1
        self._paths[number] = path
        return number

    def path_of(self, node: Any) -> int:
        """Where the forward operator of a node was called; 0 if that is not known."""
        return self._paths.get(int(node._sequence_nr()), 0)

    def reach(self, node: Any) -> None:
        """A backward pass has come to a node, and so comes to all that the node leads to."""
        left = [node]
        while left:
            one = left.pop()
            number = int(one._sequence_nr())
            if number not in self._reached:
                self._reached.add(number)
                left += [above for above, _ in one.next_functions if above is not None]

    def is_reached(self, number: int) -> bool:
        """Whether a backward pass came to the node with a number."""
        return number in self._reached


class StepWork:
    """What was watched of two steps, and the first one's work: forward, what the user's lines called; and backward.

    What data loaders call is no part of it.
    """

    def __init__(
        self,
        flow: Flow,
        graph: AutogradGraph,
        paths: list[CallPath],
        *,
        given: Iterable[int],
        unread_is_used: bool,
    ) -> None:
        """Look at what is still there.

        Args:
            flow: all operations.
            graph: autograd's of them.
            paths: of `CallPaths`.
            given: the operations that give parameters their gradients.
            unread_is_used: whether code that shows no operator may use results that no operator reads.
        """
        self.flow, self.graph = flow, graph
        self.operations, self.paths = flow.operations, paths
        self.places = NumberedPlaces()
        self.given = frozenset(given)
        self._unread_is_used = unread_is_used
        first = [(number, one) for number, one in enumerate(self.operations) if one.step == 0]
        self.forward = [
            (number, one)
            for number, one in first
            if one.pass_number < 0 and self.paths[one.site.path] and not one.site.is_loading
        ]
        self._forward = self._by_line(self.forward)
        self.backward = [(number, one) for number, one in first if one.pass_number >= 0]
        self.readers = flow.readers(number for number, one in enumerate(flow.operations) if one.pass_number < 0)
        """By operation: those outside of backward passes, of any step, that read its result; ascending."""
        self._backward = self._by_line(self.backward)
        self.live = self.used()
        """The operations whose results somebody needs."""

    def used(self, *, without: Set[int] = frozenset()) -> set[int]:
        """The operations whose results somebody needs; `without`: operations that are no use."""
        kept = self.flow.kept(unread_is_used=self._unread_is_used)
        return self.flow.reaching([*(set(self.flow.sinks()) - without), *kept, *self.given])

    @cached_property
    def trained(self) -> set[int]:
        """The operations that a backward pass came to, and those that have nodes and go on from these."""
        found: set[int] = set()
        for number, one in enumerate(self.operations):
            if one.node >= 0 and (self.graph.is_reached(one.node) or not found.isdisjoint(one.graph_inputs)):
                found.add(number)
        return found

    def read_alone(self, storages: Mapping[int, int], readers: Set[int]) -> set[int]:
        """Of operations, each with its result's storage: those whose results only each other and `readers` read."""
        found: set[int] = set()
        for number, storage in sorted(storages.items(), reverse=True):
            if self.flow.is_let_go(storage) and all(one in found or one in readers for one in self.readers[number]):
                found.add(number)
        return found

    def path_of(self, number: int) -> CallPath:
        """The lines that an operation was called through."""
        return self.paths[self.operations[number].site.path]

    def place_of(self, number: int) -> int:
        """The number of the line that called an operation."""
        return self.places.number_of(self.path_of(number)[-1])

    def bytes_of(self, numbers: Iterable[int]) -> int:
        """What some operations write."""
        return sum(self.operations[number].result_bytes for number in numbers)

    def uses(self, unused: Set[int]) -> list[OperatorUse]:
        """Of the lines of some forward operations, whoever called them, with how many are among these."""
        return self.uses_among(self._at_lines(self._forward, unused), unused)

    def backward_uses(self, forward: Set[int]) -> list[OperatorUse]:
        """The same of backward work: that of calls from where these forward operations were called."""
        sites = {self.operations[number].site.path for number in forward}
        mine = self._at_lines(self._backward, forward)
        behind = {number for number, one in mine if one.forward_path in sites}
        return self.uses_among(mine, behind)

    def backward_uses_of_nodes(self, forward: Set[int], nodes: Set[int] = frozenset()) -> list[OperatorUse]:
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
        beginnings = wholly((self.paths[one.site.path], number in such) for number, one in self.forward if one.computes)
        groups: dict[int, set[int]] = defaultdict(set)
        for number, one in self.forward:
            if number in chosen:
                path = outermost_of(self.paths[one.site.path], beginnings)
                groups[self.places.number_of(path[-1])].add(number)
        return groups

    def _by_line(self, operations: Iterable[Numbered]) -> dict[PathEntry, list[Numbered]]:
        found: dict[PathEntry, list[Numbered]] = defaultdict(list)
        for number, one in operations:
            if path := self.paths[one.forward_path]:
                found[path[-1]].append((number, one))
        return found

    def _at_lines(self, by_line: dict[PathEntry, list[Numbered]], numbers: Set[int]) -> list[Numbered]:
        lines = dict.fromkeys(self.path_of(number)[-1] for number in sorted(numbers))
        return [pair for line in lines for pair in by_line.get(line, ())]
