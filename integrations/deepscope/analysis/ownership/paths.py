"""Call paths, each kept once: a path is its caller's path and one more location."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.trace.arrays import by_depth, distinct_places, sums_with_callees
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class PathTable:
    """Call paths; path 0 is the empty one, and a path's number is greater than its parent's."""

    parent: Int64
    """The path without its last location, -1 for the empty one; shape (paths,)."""
    location: Int64
    """The last location, -1 for the empty one; shape (paths,)."""

    def __len__(self) -> int:
        return len(self.parent)

    def outermost(self, group: Int64) -> Mask:
        """Which paths go on from no other path of their group; `group` is that of each path, shape (paths,)."""
        found = np.ones(len(self), np.bool_)
        above = self.parent
        while (above > 0).any():
            found &= (above <= 0) | (group[above] != group)
            above = np.where(above > 0, self.parent[above], 0)
        return found

    def totals(self, values: Int64, group: Int64, groups: int) -> Int64:
        """What each group of locations holds with all that lies below it, recursion counted once.

        Args:
            values: self values by path; shape (paths,) or (paths, columns).
            group: group of each location, -1 for none; shape (locations,).
            groups: how many groups there are.

        Returns:
            Shape (groups,) or (groups, columns).
        """
        below = sums_with_callees(values, self.parent)
        own = np.append(group, -1)[self.location]
        outermost = (own >= 0) & self.outermost(own)
        result = np.zeros((groups, *values.shape[1:]), np.int64)
        np.add.at(result, own[outermost], below[outermost])
        return result


class PathBuilder:
    """Numbers call paths in the order in which they are asked for; `table` is what it has numbered so far."""

    def __init__(self, known: PathTable | None = None) -> None:
        self._parent: list[int] = [-1] if known is None else known.parent.tolist()
        self._location: list[int] = [-1] if known is None else known.location.tolist()
        self._ids = {key: path for path, key in enumerate(zip(self._parent, self._location, strict=True))}
        self._joined: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._parent)

    def table(self) -> PathTable:
        """The paths, which no later call changes."""
        return PathTable(np.array(self._parent, np.int64), np.array(self._location, np.int64))

    def of(self, locations: Sequence[int]) -> int:
        """The path through these locations, outermost first."""
        return self.through(0, locations)

    def through(self, path: int, locations: Sequence[int]) -> int:
        """The path that goes on from another one through these locations."""
        for location in locations:
            path = self._extend(path, location)
        return path

    def locations(self, path: int) -> list[int]:
        """The locations of a path, outermost first."""
        found = []
        while path > 0:
            found.append(self._location[path])
            path = self._parent[path]
        return found[::-1]

    def of_forest(self, up: Int64, location: Int64) -> Int64:
        """Paths of all nodes of a forest at once.

        Args:
            up: shape (k,); each node's caller, -1 at the top.
            location: shape (k,).

        Returns:
            The path that ends at each node; shape (k,).
        """
        path = np.zeros(len(up), np.int64)
        width = int(location.max(initial=0)) + 1
        for nodes in by_depth(up):
            above = up[nodes]
            key = np.where(above < 0, 0, path[above]) * width + location[nodes]
            unique, inverse = distinct_places(key)
            ids = [self._extend(k // width, k % width) for k in unique.tolist()]
            path[nodes] = np.array(ids, np.int64)[inverse]
        return path

    def join(self, forward: int, caller: int) -> int:
        """The path of backward work: the forward operator's joined with that of the `backward()` call, each line once.

        It runs through what both share, then what is the caller's alone, then the rest of the forward path, so that it
        ends at the forward operator's line, which owns the work.
        """
        if forward == 0 or caller == 0:
            return forward or caller
        key = (forward, caller)
        found = self._joined.get(key)
        if found is None:
            ahead, behind = self.locations(forward), self.locations(caller)
            shared = 0
            while shared < min(len(ahead) - 1, len(behind)) and ahead[shared] == behind[shared]:
                shared += 1
            alone = [location for location in behind[shared:] if location not in ahead]
            found = self._joined[key] = self.of(ahead[:shared] + alone + ahead[shared:])
        return found

    def _extend(self, path: int, location: int) -> int:
        """The path that goes one location further."""
        key = (path, location)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._parent)
            self._parent.append(path)
            self._location.append(location)
        return found


def paths_of_forest(up: Int64, location: Int64) -> tuple[PathTable, Int64]:
    """The paths in a forest, and the one that ends at each node, as `PathBuilder.of_forest` describes it."""
    builder = PathBuilder()
    found = builder.of_forest(up, location)
    return builder.table(), found
