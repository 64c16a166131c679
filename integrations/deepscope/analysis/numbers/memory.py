"""Memory by device and line: the curve and its peak, and what was live then, by the line and by what held it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, sums
from deepscope.analysis.numbers.memory_blocks import KINDS, Blocks, device_codes, device_of, find_blocks, held_by_owner
from deepscope.analysis.ownership.calls import Nested, open_at
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.model import Int64, MemoryEvents, Trace

_CPU = 0  # torch's DeviceType


@dataclass(frozen=True, slots=True)
class MemoryCurve:
    """One device's memory; arrays of shape (k,), one row an event of the extent."""

    code: int
    device_type: int
    device_id: int
    place: Int64
    """Of each event in the order of `MemoryUse`."""
    ts_ns: Int64
    allocated_bytes: Int64
    reserved_bytes: Int64
    """-1 where the trace does not say."""
    peak: int
    """Row of the peak."""
    held_bytes: Int64
    """What was live at the peak by line and kind, the last line for none; shape (lines + 1, kinds). It sums to the
    peak: to what was allocated or, should that be more, to the blocks that are known to have been live."""

    @property
    def peak_bytes(self) -> int:
        """The most that was allocated."""
        return int(self.held_bytes.sum())


@dataclass(frozen=True)
class MemoryUse:
    """The memory of the devices of a trace, or of its CPU; arrays of shape (k,), one row an event in order of time."""

    trace: Trace
    rows: Int64
    """Rows of `trace.memory`."""
    event: Int64
    """What was open on the thread of each instant, -1 for nothing."""
    line: Int64
    """The line that owns each event, -1 for none."""
    lines: int
    blocks: Blocks
    extent: Extent

    @cached_property
    def counted(self) -> Mask:
        """Which events lie within the extent."""
        return self.extent.holds(self.trace.memory.ts_ns[self.rows]) & self.extent.chooses(self.event)

    @cached_property
    def device(self) -> Int64:
        """The device of each event, as `device_codes` has it."""
        memory = self.trace.memory
        return device_codes(
            memory.device_type[self.rows].astype(np.int64), memory.device_id[self.rows].astype(np.int64)
        )

    @cached_property
    def devices(self) -> list[MemoryCurve]:
        """Those with events within the extent."""
        return [self._curve(int(code)) for code in distinct_values(self.device[self.counted]).tolist()]

    def columns(self) -> Columns:
        """Bytes by line, the devices summed; columns of shape (lines + 1,)."""
        size = self.trace.memory.size_bytes[self.rows]
        gain, loss = self.counted & (size > 0), self.counted & (size < 0)
        held = np.zeros((self.lines + 1, len(KINDS)), np.int64)
        for one in self.devices if self.extent.work is None else ():  # a part of a step has no peak of its own
            held += one.held_bytes
        return {
            "bytes_allocated": by_line(self.line[gain], self.lines, size[gain]),
            "bytes_freed": by_line(self.line[loss], self.lines, -size[loss]),
            "peak_bytes": held.sum(axis=1),
            **{f"peak_{kind}_bytes": held[:, number] for number, kind in enumerate(KINDS)},
        }

    def held_at(self, place: int, code: int, level: int) -> Int64:
        """What is live on a device after an event, by line and kind, to a level; shape (lines + 1, kinds)."""
        return held_by_owner(self.blocks, self.line_of_block, self.lines, place=place, device=code, level=level)

    @cached_property
    def line_of_block(self) -> Int64:
        """The line that allocated each block, -1 for none; shape (b,)."""
        return pick(self.line, self.blocks.begin)

    def level_of(self, code: int) -> tuple[Int64, Int64]:
        """Places of a device's events, and what was allocated after each."""
        memory = self.trace.memory
        place = np.flatnonzero(self.device == code)
        total = memory.total_allocated_bytes[self.rows[place]]
        # The CPU's total begins with nothing, or with what an earlier recording had left.
        is_known = bool((total >= 0).all()) and not (device_of(code)[0] == _CPU and self._is_surveyed)
        return place, total if is_known else self._summed(place, code)

    def saving_without(self, curve: MemoryCurve, removed_bytes: Int64) -> int:
        """By how much the peak would be lower had so much less been allocated after each event; shape of `rows`."""
        return int(curve.allocated_bytes[curve.peak] - (curve.allocated_bytes - removed_bytes[curve.place]).max())

    def live_bytes(self, chosen: Mask) -> Int64:
        """How much of some blocks (shape (b,)) is live after each event; shape of `rows`."""
        begin, end, size = (column[chosen] for column in (self.blocks.begin, self.blocks.end, self.blocks.size_bytes))
        change = sums(np.maximum(begin, 0), len(self.rows) + 1, size)
        np.subtract.at(change, np.minimum(end, len(self.rows)), size)
        return np.cumsum(change)[:-1]

    @property
    def _is_surveyed(self) -> bool:
        return self.trace.header.memory is not None

    def _summed(self, place: Int64, code: int) -> Int64:
        """The running sum, with what was there before the window until it was released."""
        blocks, size = self.blocks, self.trace.memory.size_bytes[self.rows[place]]
        before = (blocks.device == code) & (blocks.begin < 0)
        level = np.cumsum(size) + int(blocks.size_bytes[before].sum())
        silent = np.flatnonzero(before & blocks.is_silent)
        ended = silent[np.argsort(blocks.end[silent], kind="stable")]
        gone = np.append(0, np.cumsum(blocks.size_bytes[ended]))
        level = level - gone[np.searchsorted(blocks.end[ended], place, "right")]
        # Bytes that are freed twice were there before in some way.
        return np.asarray(level - min(int(level.min(initial=0)), 0))

    def _curve(self, code: int) -> MemoryCurve:
        place, level = self.level_of(code)
        chosen = self.counted[place]
        place, level = place[chosen], level[chosen]
        memory, row = self.trace.memory, self.rows[place]
        device_type, device_id = device_of(code)
        peak = int(np.argmax(level))
        return MemoryCurve(
            code=code,
            device_type=device_type,
            device_id=device_id,
            place=place,
            ts_ns=memory.ts_ns[row],
            allocated_bytes=level,
            reserved_bytes=reserved_bytes(memory, row),
            peak=peak,
            held_bytes=self.held_at(int(place[peak]), code, int(level[peak])),
        )


def reserved_bytes(memory: MemoryEvents, row: Int64) -> Int64:
    """What the allocator holds after each event (rows); -1 where it does not know, for which the CPU's says 0."""
    reserved = memory.total_reserved_bytes[row]
    return np.where(reserved > 0, reserved, -1)


def find_memory(
    trace: Trace, nested: Nested, location: Int64, lines: int, extent: Extent, *, on_cpu: bool
) -> MemoryUse:
    """The memory of the devices, or with `on_cpu` of the CPU.

    `location` is the line that owns each event, -1 for none, shape (n,).
    """
    memory = trace.memory
    rows = np.flatnonzero((memory.device_type == _CPU) == on_cpu)
    rows = rows[np.argsort(memory.ts_ns[rows], kind="stable")]
    event = open_at(trace, nested, memory.ts_ns[rows], memory.thread[rows])
    return MemoryUse(
        trace=trace,
        rows=rows,
        event=event,
        line=pick(location, event),
        lines=lines,
        blocks=find_blocks(memory, rows, trace.header.memory),
        extent=extent,
    )


_MOST = 1 << 53


def capacity_bytes(trace: Trace, device_type: int, device_id: int) -> int:
    """The device's memory; 0 where the trace does not say, as of the CPU."""
    listed = trace.metadata.get("deviceProperties")
    for one in listed if isinstance(listed, list) and device_type != _CPU else ():
        if isinstance(one, dict) and one.get("id") == device_id:
            size = one.get("totalGlobalMem")
            return size if isinstance(size, int) and 0 < size < _MOST else 0
    return 0
