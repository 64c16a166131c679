"""The calls of collectives and of point-to-point messages on one rank, one by one: what is matched over the ranks."""

from __future__ import annotations

import msgspec

from deepscope.records.merging import First


class CollectiveCall(msgspec.Struct, array_like=True):
    """One call: a kernel of a device, or a span of the CPU."""

    start_ns: First[int]
    """Nanoseconds since the epoch, by the rank's own clock."""
    end_ns: First[int]
    """By the same clock."""
    step: First[int]
    """The number of the step that launched it; -1 for none."""
    collective: First[int]
    """Index in `Profile.collectives`: its kind, process group, type and size."""
    sequence: First[int]
    """torch's number of the call in its process group (`Seq`); -1 where the trace does not tell."""
    peer: First[int]
    """Of a point-to-point message: the other rank, by its number in the whole run; -1 for collectives or if unknown."""
    line: First[int]
    """Index in `Profile.lines` of the line that owns it; -1 for none."""
    size_bytes: First[int] = 0
    """Of its message; 0 where the trace does not tell."""
