"""Which nodes of autograd's graph forward work made, and which of them a backward pass comes to."""

from __future__ import annotations

from typing import Any

from deepscope.capture import torch_compat


class GraphNodes:
    """Of some steps. Nodes go by their numbers; none is kept."""

    def __init__(self) -> None:
        self._paths: dict[int, int] = {torch_compat.next_node_number() - 1: 0}
        """By the number of a node: the path of its forward operator."""
        self._reached: set[int] = set()

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
