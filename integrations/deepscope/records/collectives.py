"""Collectives by kind, process group, element type and size, and each call of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from deepscope.records.merging import First, Largest, RankRecords, Smallest, Sum, merged_by

TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Collectives in which each rank needs the data of each, so that all leave at one time."""


def _shortest(group: RankRecords[Any], field: str) -> list[int]:
    """Call by call the least of the ranks of a known group; nothing unless all have as many calls."""
    lists = group.values(field)
    if not lists[0] or not group.records[0].group_ranks or len({len(one) for one in lists}) > 1:
        return []
    return [min(times) for times in zip(*lists, strict=True)]


class Collective(msgspec.Struct, kw_only=True):
    """Collectives of one kind, process group, element type and size (to a power of two)."""

    kind: First[str]
    """As torch calls it: `all_reduce`, `all_gather`, …; "" where the trace does not tell."""
    library: First[str]
    """`nccl`, `gloo`, …"""
    group: First[str]
    """The process group's name; "" where the trace does not tell, and so the next two."""
    group_description: First[str]
    group_ranks: First[str]
    """`0-3, 8`."""
    group_size: First[int]
    """0 where the trace does not tell."""
    dtype: First[str]
    size_class_bytes: First[int]
    """The power of two at or below the size of a message; 0 where it is not known."""
    on_device: First[bool]
    """Kernels of a device; else spans of a thread of the CPU."""
    calls: Sum
    outside_calls: Sum = 0
    """Part of `calls`: launched outside the steps; 0 in a trace without steps."""
    time_ns: Sum
    bytes: Sum
    """The sizes of the messages, as nccl-tests counts them: the larger of what goes in and comes out of one rank."""
    bytes_known_ns: Sum
    """Time of the collectives whose size is known."""
    bus_bytes: Sum
    """`bytes` times nccl-tests' factor of the kind and the size of the group; 0 where that is not known."""
    bus_known_ns: Sum
    exposed_ns: Sum
    """The part of `time_ns` that no computation overlaps."""
    shortest_ns: Annotated[list[int], merged_by(_shortest)] = []
    """Call by call, the time on the rank that had it shortest; empty where calls cannot be matched over the ranks."""
    min_ns: Smallest
    max_ns: Largest
    ranks: Sum = 1
    """Ranks in this row."""

    @property
    def transfer_ns(self) -> int | None:
        """The part of `time_ns` that it takes to move the data: every rank's call is as long as the shortest.

        None where not all ranks of the group are in this row, where calls are not matched, and for kinds that not all
        ranks leave together.
        """
        if self.ranks != self.group_size and (self.group_size or self.ranks == 1):
            return None
        if self.ranks > 1 and self.kind not in TOGETHER:
            return None
        return sum(self.shortest_ns) * self.ranks if self.shortest_ns else None

    @property
    def algorithm_bytes_per_s(self) -> int | None:
        """Bytes of the messages a second, where sizes are known."""
        return self.bytes * 10**9 // self.bytes_known_ns if self.bytes_known_ns else None

    @property
    def bus_bytes_per_s(self) -> int | None:
        """What each link must have carried a second, where the group's size is known, too."""
        return self.bus_bytes * 10**9 // self.bus_known_ns if self.bus_known_ns else None

    @property
    def wait_ns(self) -> int | None:
        """The part in which a rank waits for the others; None where that cannot be told."""
        transfer = self.transfer_ns
        return None if transfer is None else self.time_ns - transfer


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
