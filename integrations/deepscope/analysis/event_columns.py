"""What columns of events have in common: names by index, places in code, steps and threads; and what each one means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deepscope.analysis.analysis import Analysis
from deepscope.records.columns import RecordColumn
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.model import Int64

ABSENT = -1


def integers(name: str, values: Int64) -> RecordColumn:
    """Whole numbers, one in each row."""
    return RecordColumn(name, "integer", values)


def optional(name: str, values: Int64, absent: int = ABSENT) -> RecordColumn:
    """Whole numbers, some of which are lacking."""
    return RecordColumn(name, "integer", values, is_optional=True, absent=absent)


def texts(name: str, codes: npt.NDArray[np.integer], words: Sequence[str]) -> RecordColumn:
    """Words by their index, -1 for none; only those that occur stand in the column."""
    found, place = distinct_places(codes)
    lacks = int(len(found) > 0 and found[0] < 0)
    used = [words[code] for code in found[lacks:].tolist()]
    return RecordColumn(name, "text", place - lacks, words=used, is_optional=True)


def places(analysis: Analysis, location: Int64) -> list[RecordColumn]:
    """File, line and function of the line that owns each row, by its index."""
    locations = analysis.attribution.scopes.locations
    lines = np.array([one.line for one in locations], np.int64)
    return [
        texts("file", location, [one.file for one in locations]),
        optional("line", pick(lines, location)),
        texts("function", location, [one.function for one in locations]),
    ]


def modules(analysis: Analysis, event: Int64) -> RecordColumn:
    """The path of the innermost module around each event (its class where the trace has no paths)."""
    scopes = analysis.modules
    within = pick(scopes.of_event, event)
    return texts("module", pick(scopes.module, within), [path for path, _ in scopes.names])


def steps(analysis: Analysis, step: Int64) -> RecordColumn:
    """The number of the step of each row, by its index."""
    return optional("step", pick(analysis.attribution.training.steps.number, step))


def threads(analysis: Analysis, event: Int64) -> RecordColumn:
    """The thread of each event as `process/thread`, as the trace names them."""
    trace = analysis.attribution.trace
    words = [f"{one.pid}/{one.tid}" for one in trace.threads]
    return texts("thread", trace.events.thread[event], words)


def devices(analysis: Analysis, device: Int64) -> RecordColumn:
    """The index of the device of each row; none where the CPU is the device."""
    on_cpu = analysis.attribution.work.metric != "device"
    return optional("device", np.full(len(device), ABSENT, np.int64) if on_cpu else device)


COLUMNS = {
    "rank": "the rank that the trace was recorded on",
    "name": "the event's own name; of a block of memory the operator that allocated it",
    "kind": "`kernel`, `memcpy`, `memset`, `collective`; `operator` where the CPU is the device",
    "step": "the N of `ProfilerStep#N`: of device work that of its launch",
    "thread": "`process/thread`, as the trace names them",
    "device": "index of the device; none where the CPU is the device",
    "memory_record.device": "the device's name: `cuda:0`, `cpu`",
    "operator_memory.device": "the device's name: `cuda:0`, `cpu`",
    "operator_memory.duration_ns": "from allocation to release, of a block that has both",
    "stream": "the device's stream (a hash where the trace has words)",
    "start_ns": "on the trace's clock",
    "duration_ns": "from start to end",
    "host_self_ns": "time of the operator on the CPU, less the operators that it called",
    "host_total_ns": "time of the operator on the CPU",
    "device_self_ns": "device work that it launched, no operator further in",
    "device_total_ns": "device work that it and the operators which it called launched",
    "launches": "pieces of device work that it launched itself",
    "flops": "floating-point operations by its shapes; of nested ones the outermost counts",
    "input_shapes": "JSON: the dimensions of each argument, of device work those of the launching operator",
    "input_types": "JSON: the type of each argument, of operators that may move data",
    "backward": "ran below autograd's engine",
    "module": "path of the innermost module around it; the class where the trace has no paths",
    "file": "file of the line that owns it",
    "line": "that line, 1-based",
    "function": "the line's function",
    "call_stack": "`path(line): function;…`, innermost first, where the trace has it",
    "launch_delay_ns": "from the start of the launching call to the start on the device",
    "queued": "work of the device launched before it, and not finished, at its launch",
    "occupancy_percent": "occupancy as Kineto estimates it",
    "size_bytes": "of a copy, a fill or a block of memory",
    "communication.size_bytes": "of the message, as nccl-tests counts it",
    "collective": "kind, as torch calls it: `all_reduce`, …",
    "library": "`nccl`, `gloo`, …",
    "group": "the process group's name",
    "group_size": "ranks of the process group",
    "dtype": "element type of the message",
    "correlation": "joins it to the call that launched it",
    "operator": "the operator that launched it",
    "count": "how many pieces of work",
    "total_ns": "their time; where the CPU is the device, operators' own",
    "min_ns": "the shortest",
    "mean_ns": "the mean, rounded down",
    "max_ns": "the longest",
    "ratio": "share of the device's time, 0 to 1",
    "computing_ns": "union of kernels that are no collectives (of operators, where the CPU is the device)",
    "communication_ns": "union of collectives",
    "communication_not_overlapped_ns": "the part of it that no computing overlaps",
    "overlapped_ns": "the part of the communication that computing overlaps",
    "not_overlapped_ns": "the part of the collective that no computing overlaps",
    "copies_not_overlapped_ns": "union of copies and fills that neither computing nor communication overlaps",
    "free_ns": "the device does nothing; with the parts that are not overlapped it sums to `duration_ns`",
    "at_ns": "on the trace's clock",
    "change_bytes": "allocated, or less than 0 for released",
    "allocated_bytes": "allocated on the device after it",
    "reserved_bytes": "what the allocator holds of the device after it",
    "held_as": "what held the block: parameters, gradients, optimizer, inputs, activations, temporaries, unknown",
    "allocated_at_ns": "on the trace's clock; none for a block from before the window",
    "released_at_ns": "on the trace's clock; none for a block that outlives the window",
    "allocated_then_bytes": "allocated on the device after its allocation",
    "allocated_after_release_bytes": "allocated on the device after its release",
}
"""By a column's name; with its table's name in front where it means something else there."""


def meaning(table: str, column: str) -> str:
    """What `COLUMNS` says of a column."""
    return COLUMNS.get(f"{table}.{column}") or COLUMNS[column]
