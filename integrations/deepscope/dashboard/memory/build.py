"""A trace's memory, block by block, from the trace."""

from __future__ import annotations

from deepscope.analysis.array_ops.extent import Extent
from deepscope.analysis.numbers.memory import find_memory, reserved_bytes
from deepscope.analysis.numbers.memory_blocks import device_of
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.modules import find_modules
from deepscope.analysis.tables.memory import device_name
from deepscope.dashboard.memory.moments import AllocationSite, DeviceMoments, Moments
from deepscope.trace.arrays import distinct_values, pick


def moments_of(found: Attribution) -> Moments:
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
    return Moments(
        devices=devices,
        lines=[AllocationSite(one.file, one.line, one.function) for one in locations],
        modules=[one.path for one in modules.instances],
        blocks=use.blocks,
        line=use.line_of_block,
        module=pick(allocated_in, use.blocks.begin),
    )
