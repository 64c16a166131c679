"""Which rows of a table (an embedding) a backward pass has gradients for."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.capture.audit.flow import Flow, Returned
from deepscope.capture.audit.gradients import Gradient
from deepscope.capture.audit.operator_facts import is_plain

_DENSE = {
    "aten::embedding_dense_backward": (2, None),
    "aten::_embedding_bag_backward": (6, 8),
    "aten::_embedding_bag_dense_backward": (5, 7),
}
"""Where each operator has the number of rows, and the mode of a bag; the second argument are the rows looked up."""
_MAX = 2
"""The mode of bags that has no sparse gradient."""
_SUMS = ("aten::add", "aten::add_")


class LookedUpRows:
    """Of each operation that makes the gradient of a whole table, by its number."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.used: dict[int, frozenset[int]] = {}
        self.rows: dict[int, int] = {}

    def note(self, number: int, returned: Returned) -> None:
        """An operation of a backward pass."""
        args = returned.args
        rows, mode = _DENSE.get(self._flow.operations[number].name, (len(args), None))
        if len(args) <= max(rows, mode or 0) or not is_plain(args[1]) or (mode is not None and args[mode] == _MAX):
            return
        self.used[number] = frozenset(args[1].unique().tolist())
        self.rows[number] = int(args[rows])

    def made_of(self, gradients: Sequence[Gradient]) -> list[int]:
        """The operations whose results a parameter's gradients are the sum of; none if there are others among them."""
        operations = self._flow.operations
        own = {number for one in gradients for number in one.operations}
        left, seen = list(own), set(own)
        found = []
        while left:
            number = left.pop()
            if number in self.rows:
                found.append(number)
            elif number in own or operations[number].name in _SUMS:
                new = operations[number].inputs - seen
                seen |= new
                left += new
            else:
                return []
        return sorted(found)
