"""What the tables of events and their columns are, in words: of docs/columns.md, and of Parquet files' metadata."""

from __future__ import annotations

from deepscope.records.columns import ColumnType

COLUMNS: dict[str, tuple[ColumnType, bool, str]] = {
    "rank": ("integer", True, "the rank that the trace was recorded on"),
    "name": ("text", True, "the event's own name; of a block of memory the operator that allocated it"),
    "kind": ("text", True, "`kernel`, `memcpy`, `memset`, `collective`; `operator` where the CPU is the device"),
    "step": ("integer", True, "the N of `ProfilerStep#N`: of device work that of its launch"),
    "thread": ("text", True, "`process/thread`, as the trace names them"),
    "device": ("integer", True, "index of the device; none where the CPU is the device"),
    "memory_record.device": ("text", False, "the device's name: `cuda:0`, `cpu`"),
    "operator_memory.device": ("text", False, "the device's name: `cuda:0`, `cpu`"),
    "operator_memory.duration_ns": ("integer", True, "from allocation to release, of a block that has both"),
    "stream": ("integer", True, "the device's stream (a hash where the trace has words)"),
    "start_ns": ("integer", False, "on the trace's clock"),
    "duration_ns": ("integer", False, "from start to end"),
    "host_self_ns": ("integer", False, "time of the operator on the CPU, less the operators that it called"),
    "host_total_ns": ("integer", False, "time of the operator on the CPU"),
    "device_self_ns": ("integer", False, "device work that it launched, no operator further in"),
    "device_total_ns": ("integer", False, "device work that it and the operators which it called launched"),
    "launches": ("integer", False, "pieces of device work that it launched itself"),
    "flops": ("integer", False, "floating-point operations by its shapes; of nested ones the outermost counts"),
    "input_shapes": (
        "text",
        True,
        "JSON: the dimensions of each argument, of device work those of the launching operator",
    ),
    "input_types": ("text", True, "JSON: the type of each argument, of operators that may move data"),
    "backward": ("flag", False, "ran below autograd's engine"),
    "module": ("text", True, "path of the innermost module around it; the class where the trace has no paths"),
    "file": ("text", True, "file of the line that owns it"),
    "line": ("integer", True, "that line, 1-based"),
    "function": ("text", True, "the line's function"),
    "call_stack": ("text", True, "`path(line): function;…`, innermost first, where the trace has it"),
    "launch_delay_ns": ("integer", True, "from the start of the launching call to the start on the device"),
    "queued": ("integer", True, "work of the device launched before it, and not finished, at its launch"),
    "occupancy_percent": ("integer", True, "occupancy as Kineto estimates it"),
    "size_bytes": ("integer", True, "of a copy, a fill or a block of memory"),
    "communication.size_bytes": ("integer", True, "of the message, as nccl-tests counts it"),
    "collective": ("text", True, "kind, as torch calls it: `all_reduce`, …"),
    "library": ("text", True, "`nccl`, `gloo`, …"),
    "group": ("text", True, "the process group's name"),
    "group_size": ("integer", True, "ranks of the process group"),
    "dtype": ("text", True, "element type of the message"),
    "correlation": ("integer", True, "joins it to the call that launched it"),
    "operator": ("text", True, "the operator that launched it"),
    "count": ("integer", False, "how many pieces of work"),
    "total_ns": ("integer", False, "their time; where the CPU is the device, operators' own"),
    "min_ns": ("integer", False, "the shortest"),
    "mean_ns": ("integer", False, "the mean, rounded down"),
    "max_ns": ("integer", False, "the longest"),
    "ratio": ("number", False, "share of the device's time, 0 to 1"),
    "computing_ns": (
        "integer",
        False,
        "union of kernels that are no collectives (of operators, where the CPU is the device)",
    ),
    "communication_ns": ("integer", False, "union of collectives"),
    "communication_not_overlapped_ns": ("integer", False, "the part of it that no computing overlaps"),
    "overlapped_ns": ("integer", False, "the part of the communication that computing overlaps"),
    "not_overlapped_ns": ("integer", False, "the part of the collective that no computing overlaps"),
    "copies_not_overlapped_ns": (
        "integer",
        False,
        "union of copies and fills that neither computing nor communication overlaps",
    ),
    "free_ns": (
        "integer",
        False,
        "the device does nothing; with the parts that are not overlapped it sums to `duration_ns`",
    ),
    "at_ns": ("integer", False, "on the trace's clock"),
    "change_bytes": ("integer", False, "allocated, or less than 0 for released"),
    "allocated_bytes": ("integer", False, "allocated on the device after it"),
    "reserved_bytes": ("integer", True, "what the allocator holds of the device after it"),
    "held_as": (
        "text",
        True,
        "what held the block: parameters, gradients, optimizer, inputs, activations, temporaries, unknown",
    ),
    "allocated_at_ns": ("integer", True, "on the trace's clock; none for a block from before the window"),
    "released_at_ns": ("integer", True, "on the trace's clock; none for a block that outlives the window"),
    "allocated_then_bytes": ("integer", True, "allocated on the device after its allocation"),
    "allocated_after_release_bytes": ("integer", True, "allocated on the device after its release"),
}
"""By name: type, whether it may be lacking, what it is. `TABLE.NAME` is of one table, NAME of all others."""

_PLACE = ("file", "line", "function")

TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "operator_details": (
        "A row a run of an operator, in the order of the file.",
        ("rank", "name", "step", "thread", "start_ns", "host_self_ns", "host_total_ns", "device_self_ns",
         "device_total_ns", "launches", "flops", "input_shapes", "input_types", "backward", "module", *_PLACE,
         "call_stack"),
    ),
    "kernel_details": (
        "A row a piece of device work; none where the CPU is the device. A fused kernel is its largest part's line's.",
        ("rank", "name", "kind", "step", "device", "stream", "start_ns", "duration_ns", "launch_delay_ns", "queued",
         "occupancy_percent", "size_bytes", "correlation", "operator", "input_shapes", "backward", "module", *_PLACE),
    ),
    "step_trace_time": (
        "A row a step and device, within the step's window; without steps the window is one, without a number.",
        ("rank", "device", "step", "start_ns", "duration_ns", "computing_ns", "communication_ns",
         "communication_not_overlapped_ns", "overlapped_ns", "copies_not_overlapped_ns", "free_ns"),
    ),
    "op_statistic": (
        "A row a kind of device work by name, the dearest first.",
        ("rank", "device", "name", "kind", "count", "total_ns", "min_ns", "mean_ns", "max_ns", "ratio"),
    ),
    "memory_record": (
        "A row an allocation or release, of the devices (of the CPU where it is the device).",
        ("rank", "device", "at_ns", "change_bytes", "allocated_bytes", "reserved_bytes", *_PLACE),
    ),
    "operator_memory": (
        "A row a block of memory, in the order of their beginnings.",
        ("rank", "name", "device", "size_bytes", "held_as", "allocated_at_ns", "released_at_ns", "duration_ns",
         "allocated_then_bytes", "allocated_after_release_bytes", *_PLACE),
    ),
    "communication": (
        "A row a collective, in order of time.",
        ("rank", "name", "step", "device", "stream", "start_ns", "duration_ns", "overlapped_ns", "not_overlapped_ns",
         "collective", "library", "group", "group_size", "dtype", "size_bytes", "operator", "input_shapes", *_PLACE),
    ),
}  # fmt: skip
"""By name: what a row is, and the columns in their order."""


def meaning(table: str, column: str) -> tuple[ColumnType, bool, str]:
    """What `COLUMNS` says of a column."""
    return COLUMNS.get(f"{table}.{column}") or COLUMNS[column]
