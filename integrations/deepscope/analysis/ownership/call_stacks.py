"""The call stack of each operator: the call path of its work, from the line that owns it outwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from deepscope.analysis.array_ops.selection import of_kind
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.owners import joined_paths
from deepscope.analysis.ownership.paths import PathBuilder
from deepscope.trace.arrays import distinct_places
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

CUT_MARK = "..."
"""Stands for the frames that were left out of a stack."""

_DEPTHS = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Limits for the frames of a stack, down to the owner alone."""


@dataclass(frozen=True, slots=True)
class CallStacks:
    """Each distinct stack once, and which one each event has."""

    frames: list[str]
    """`path(line): function`, by location."""
    stacks: list[tuple[int, ...]]
    """Locations, innermost first. A line that calls itself stands once."""
    of_event: Int64
    """Index into `stacks`, -1 none; shape (events,)."""

    def texts(self, depth: int) -> list[str]:
        """The stacks as `Call stack` arguments of at most so many frames; frames in the middle are left out.

        The innermost frames say where the work comes from, the outermost which loop and which `backward()`.
        """
        return [";".join(self._parts(stack, depth)) for stack in self.stacks]

    def depth_within(self, size_bytes: int) -> int:
        """The greatest depth at which all events' texts together take so many bytes; 1 where none does."""
        counts = np.bincount(self.of_event[self.of_event >= 0], minlength=len(self.stacks))
        for depth in _DEPTHS:
            lengths = [len(text.encode("utf-8", "replace")) for text in self.texts(depth)]
            if int(counts @ np.array(lengths, np.int64)) <= size_bytes:
                return depth
        return _DEPTHS[-1]

    def deeper_than(self, depth: int) -> int:
        """How many events have a stack of more frames."""
        deeper = np.array([len(stack) > depth for stack in self.stacks] + [False])
        return int(deeper[self.of_event].sum())

    def _parts(self, stack: tuple[int, ...], depth: int) -> Iterator[str]:
        if len(stack) <= depth:
            yield from (self.frames[location] for location in stack)
            return
        outer = depth // 4
        yield from (self.frames[location] for location in stack[: depth - outer])
        yield CUT_MARK
        yield from (self.frames[location] for location in stack[len(stack) - outer :])


def call_stacks(attribution: Attribution) -> CallStacks:
    """The stacks of all operators whose work a recorded line owns.

    The innermost frame is that line. For backward work it is the forward line; the call of `backward()` follows.
    """
    trace = attribution.trace
    of_event = np.full(len(trace.events), -1, np.int64)
    # The dashboard splits at semicolons, and a file's name may hold one.
    frames = [
        f"{place.file}({place.line}): {place.function}".replace(";", ",") for place in attribution.scopes.locations
    ]
    if not trace.has_line_scopes:
        return CallStacks(frames, [], of_event)
    operators = np.flatnonzero(of_kind(trace, Kind.OPERATOR))
    paths = PathBuilder(attribution.paths)
    found, inverse = distinct_places(joined_paths(paths, attribution.calls, attribution.owners.path, operators))
    of_event[operators] = np.where(found > 0, np.arange(len(found)), -1)[inverse]
    stacks = [tuple(place for place, _ in groupby(reversed(paths.locations(path)))) for path in found.tolist()]
    return CallStacks(frames, stacks, of_event)
