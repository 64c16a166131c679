"""What was live at any moment of a trace: its blocks and its devices' curves, without the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from deepscope.analysis.array_ops.intervals import Extent
from deepscope.analysis.numbers.memory import find_memory, reserved_bytes
from deepscope.analysis.numbers.memory_blocks import Blocks, device_of, held_by_owner
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.modules import find_modules
from deepscope.analysis.tables.memory import curve_rows, device_name
from deepscope.errors import OptionError
from deepscope.processes import Progress
from deepscope.records import CurvePoint
from deepscope.store.cache import decode_columns
from deepscope.store.files import TraceFile
from deepscope.store.single_trace import ColumnsRequest
from deepscope.store.worker_process import ask_worker
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.model import Int64

Owner = Literal["line", "module"]
"""By what live bytes are divided, besides by kind."""


class AllocationSite(msgspec.Struct, array_like=True):
    """A line of code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class DeviceMoments:
    """One device's memory after each event; columns of shape (k,) in order of time, at least one row."""

    name: str
    code: int
    """As `device_codes` has it."""
    ts_ns: Int64
    place: Int64
    """What `Blocks` counts by."""
    allocated_bytes: Int64
    reserved_bytes: Int64
    """-1 where the trace does not say."""

    def row_at(self, at_ns: int) -> int:
        """The last event until a moment; the first one if there is none."""
        return max(int(np.searchsorted(self.ts_ns, at_ns, "right")) - 1, 0)

    def curve(self, begin_ns: int, end_ns: int) -> list[CurvePoint]:
        """The curve in a window, a few hundred points, with the one before the window and the one after it."""
        first = self.row_at(begin_ns)
        last = min(int(np.searchsorted(self.ts_ns, end_ns, "right")), len(self.ts_ns) - 1)
        chosen = slice(first, max(last, first) + 1)
        rows = curve_rows(self.ts_ns[chosen], self.allocated_bytes[chosen]) + first
        columns = (self.ts_ns[rows], self.allocated_bytes[rows], self.reserved_bytes[rows])
        return [CurvePoint(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]


@dataclass(frozen=True, slots=True)
class LiveMemory:
    """What was live after one event."""

    at_ns: int
    allocated_bytes: int
    """As the curve has it."""
    reserved_bytes: int
    by_owner: Int64
    """By owner and kind, the last row for none; shape (owners + 1, kinds). It sums to `allocated_bytes`, or to the
    blocks that are known to have been live should they be more."""


@dataclass(frozen=True, slots=True)
class MemoryMoments:
    """The memory of a trace's devices; columns of shape (b,), one row a block."""

    devices: list[DeviceMoments]
    lines: list[AllocationSite]
    modules: list[str]
    blocks: Blocks
    line: Int64
    """The line that allocated each block, -1 for none."""
    module: Int64
    """The innermost module that it was allocated in, -1 for none."""

    def device(self, name: str) -> DeviceMoments:
        """A device; "" for the first.

        Raises:
            OptionError: the trace has no memory of such a device.
        """
        found = next((one for one in self.devices if name in {"", one.name}), None)
        if found is None:
            names = ", ".join(one.name for one in self.devices)
            raise OptionError("device", name, f"no memory of it is here; there is: {names or 'none'}")
        return found

    def held_at(self, device: DeviceMoments, at_ns: int, by: Owner) -> LiveMemory:
        """What was live on a device after the last event until a moment."""
        row = device.row_at(at_ns)
        owner, owners = (self.line, len(self.lines)) if by == "line" else (self.module, len(self.modules))
        level = int(device.allocated_bytes[row])
        place = int(device.place[row])
        return LiveMemory(
            at_ns=int(device.ts_ns[row]),
            allocated_bytes=level,
            reserved_bytes=int(device.reserved_bytes[row]),
            by_owner=held_by_owner(self.blocks, owner, owners, place=place, device=device.code, level=level),
        )


def read_moments(file: TraceFile, progress: Progress, *, partial: bool = False) -> MemoryMoments:
    """A trace's moments, made in a process of its own: that one has the whole trace, this one what is asked about.

    Raises:
        TraceError: the trace cannot be read.
    """
    request = ColumnsRequest(file, "moments", partial)
    return ask_worker(request, progress, lambda body: decode_columns(body, MemoryMoments), what="its memory")


def moments_of(found: Attribution) -> MemoryMoments:
    """The memory of a trace's devices, or of its CPU where that is the device: what its Profile has the curves of."""
    trace = found.trace
    locations = found.scopes.locations
    use = find_memory(
        trace,
        found.calls.nested,
        found.owners.location,
        len(locations),
        Extent(None),
        on_cpu=found.work.metric == "cpu_self",
    )
    modules = find_modules(trace, found.calls)
    allocated_in = pick(modules.instance, pick(modules.of_event, use.event))
    devices = []
    for code in distinct_values(use.device).tolist():
        place, level = use.level_of(code)
        row = use.rows[place]
        devices.append(
            DeviceMoments(
                name=device_name(*device_of(code)),
                code=code,
                ts_ns=trace.memory.ts_ns[row],
                place=place,
                allocated_bytes=level,
                reserved_bytes=reserved_bytes(trace.memory, row),
            )
        )
    return MemoryMoments(
        devices=devices,
        lines=[AllocationSite(one.file, one.line, one.function) for one in locations],
        modules=[one.path for one in modules.instances],
        blocks=use.blocks,
        line=use.line_of_block,
        module=pick(allocated_in, use.blocks.begin),
    )
