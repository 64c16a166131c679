"""The columns of operators and of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deepscope.analysis.numbers.flop_formulas import lacks_formula
from deepscope.printable import printable
from deepscope.quantities import bytes_text
from deepscope.records import Costs, Detail, Kernel, Operator, Profile, bytes_per_s, flops_per_s
from deepscope.records.source_files import base_name
from deepscope.report.event_names import parsed, readable, shapes_text, sizes_text
from deepscope.report.line_table import cost_share
from deepscope.report.table_column import ColumnOf, field, place_column, share_column
from deepscope.trace.kinds import operator_kind

_NAME_CELLS = 16
_DETAIL_CELLS = 20
_STACK = 12
"""Lines of a stack in a table."""
_FLOPS = (
    "Two for each multiplication with its addition, where known. A causal mask takes off what it hides where the trace "
    "tells of it (record_shapes, torch 2.1 or later); elsewhere attention counts in full."
)


def operator_columns(profile: Profile, details: Sequence[Detail] = ()) -> list[ColumnOf]:
    """The columns of operators; those in detail have their shapes or stacks, too."""
    device = profile.metric == "device"
    whole_ns = profile.totals.device_ns
    by_shapes = [
        ColumnOf(
            "in_shapes", "shapes", "text", lambda row: shapes_text(row.in_shapes, row.dtypes), least=_DETAIL_CELLS
        ),
        ColumnOf(
            "out_shapes", "to", "text", lambda row: shapes_text(row.out_shapes), rank=10, least=_DETAIL_CELLS
        ),
    ]  # fmt: skip
    by_stacks = [ColumnOf("stack", "called from", "text", lambda row: stack_words(row.stack), least=_DETAIL_CELLS)]
    return [
        ColumnOf("label", "operator", "text", lambda row: readable(row.name), least=_NAME_CELLS),
        *(by_shapes if "shapes" in details else []),
        *(by_stacks if "stacks" in details else []),
        ColumnOf(
            "share",
            "share",
            "share",
            lambda row: row.self_device_ns / whole_ns if whole_ns else None,
            "Its self time as a part of all work.",
        ),
        *measured_columns(device, lambda row: row.flops or flops_missing(row) or 0, flops_per_s, bytes_per_s),
        ColumnOf(
            "tensor_cores",
            "tensor cores",
            "share",
            _tensor_cores if device else lambda _: None,
            "How much of its device time is in kernels that use them; for what can use them.",
            7,
        ),
        ColumnOf("verdict", "why", "text", lambda row: row.verdict, "What holds its work back.", 1),
        ColumnOf("type", "kind", "text", lambda row: operator_kind(row.name), "What it is of, by its name.", 11),
    ]


def kind_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of kinds of operators."""
    return [
        ColumnOf(
            "name", "kind", "text", lambda row: row.name, "What operators are of, by their names.", least=_NAME_CELLS
        ),
        field("share", "share", "share", "Of all operators' self time."),
        *measured_columns(profile.metric == "device"),
        field("operators", "operators", "count", "Different ones of this kind.", 7),
    ]  # fmt: skip


def measured_columns(
    device: bool,
    flops: Callable[[Any], int | str] = lambda row: row.flops,
    flop_rate: Callable[[Any], float | None] = lambda row: row.flops_per_s or None,
    byte_rate: Callable[[Any], float | None] = lambda row: row.bytes_per_s or None,
) -> list[ColumnOf]:
    """The numbers of an operator, or of several together."""
    cpu = [
        field("self_cpu_ns", "CPU", "time", "CPU time less operators called.", 2),
        field("total_cpu_ns", "total CPU", "time", "CPU time with operators called.", 4),
    ]
    what = "Device work" if device else "CPU time"
    return [
        field("self_device_ns", "self", "time", f"{what} of its own."),
        field("total_device_ns", "total", "time", f"{what} of it and of the operators that it calls.", 1),
        *(cpu if device else []),  # without a device the CPU's times are the columns before
        field("calls", "calls", "count", "How often it ran.", 3),
        ColumnOf("flops", "FLOPs", "flops", flops, _FLOPS, 5),
        ColumnOf("flops_per_s", "FLOP/s", "rate", flop_rate, "While work with known FLOPs ran.", 6),
        field("moved_bytes", "moves", "bytes", "The least that its work must move.", 8),
        ColumnOf("bytes_per_s", "B/s", "bandwidth", byte_rate, "While work with known bytes ran.", 6),
        field("allocated_bytes", "memory", "bytes", "Taken while it was the innermost operator.", 9),
    ]


def flops_missing(row: Operator) -> str:
    """Why an operator that multiplies has no FLOPs; "" for one that has some, or does not multiply."""
    if row.flops or not row.calls_without_flops:
        return ""
    return "no formula" if lacks_formula(row.name) else "unknown"


def _tensor_cores(row: Operator) -> float | None:
    """How much of its device time is in kernels that use tensor cores; None for what cannot use them."""
    if not row.tensor_core_eligible or not row.total_device_ns:
        return None
    return row.tensor_core_total_ns / row.total_device_ns


def stack_words(stack: str) -> str:
    """`train.py:12 < loop.py:40`, the innermost line first."""
    from deepscope.trace.names import parse_call_stack  # imports NumPy, which no other table needs

    frames = parse_call_stack(stack)
    names = [f"{base_name(one.path)}:{one.line}" for one in frames[:_STACK]]
    return printable(" < ".join([*names, *(["…"] if len(frames) > _STACK else [])]))


_OF_OPERATORS = ("share", "flops_per_s", "bytes_per_s")


def derived_columns(by: str, profile: Profile) -> list[ColumnOf]:
    """The columns of the table of a word of `--by`; none where it has fields alone."""
    if by in {"line", "function"}:
        per_step = ColumnOf("cost_per_step_ns", "/step", "time", Costs.of(profile).per_step_ns)
        return [cost_share(profile), per_step]
    if by == "operator":
        return [one for one in operator_columns(profile) if one.key in _OF_OPERATORS]
    return []


def kernel_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of kernels; what a trace does not tell is None."""
    return [
        ColumnOf("label", "kernel", "text", lambda row: readable(row.name), least=16),
        share_column("device_ns", profile.totals.device_ns, "Its part of all device work."),
        field("device_ns", "device", "time", "The sum of its durations."),
        field("calls", "calls", "count", "How often it ran.", 1),
        field("mean_ns", "mean", "time", "Its mean duration.", 2),
        field("min_ns", "min", "time", "Its shortest duration.", 15),
        field("max_ns", "max", "time", "Its longest duration.", 3),
        ColumnOf(
            "grid",
            "grid",
            "text",
            lambda row: _launch_sizes(row.grid, row.min_blocks, row.max_blocks),
            "Blocks, as most launches have them; + where others have other ones.",
            7,
            is_numeric=True,
        ),
        ColumnOf(
            "block",
            "block",
            "text",
            lambda row: _launch_sizes(row.block, row.min_threads, row.max_threads),
            "Threads of a block, as most launches have them.",
            8,
            is_numeric=True,
        ),
        ColumnOf(
            "registers",
            "registers",
            "text",
            lambda row: _range_words(row.min_registers, row.max_registers),
            "Of a thread.",
            9,
            is_numeric=True,
        ),
        ColumnOf("shared", "shared", "text", _shared_words, "Shared memory of a block.", 10, is_numeric=True),
        ColumnOf(
            "occupancy",
            "occupancy",
            "share",
            lambda row: row.occupied_ns / row.occupancy_known_ns if row.occupancy_known_ns else None,
            "The estimated share of the warps that the device can hold.",
            6,
        ),
        ColumnOf(
            "sm_blocks",
            "blocks/SM",
            "count",
            lambda row: row.sm_blocks_ns / row.sm_blocks_known_ns if row.sm_blocks_known_ns else None,
            "Blocks for each multiprocessor; below 1 some have none.",
            11,
        ),
        ColumnOf(
            "uses_tensor_cores",
            "tensor cores",
            "text",
            lambda row: "yes" if row.uses_tensor_cores else "",
            "As its name tells.",
            12,
            short="cores",
        ),
        ColumnOf(
            "delay_ns",
            "delay",
            "time",
            lambda row: row.delay_ns / row.launched if row.launched else None,
            "From the launching call to the start on the device, on average.",
            5,
        ),
        ColumnOf(
            "queued",
            "queue",
            "count",
            lambda row: row.queued / row.launched if row.launched else None,
            "Work of the device before it at its launch, on average.",
            13,
            shows_zero=True,
        ),
        ColumnOf("kind", "kind", "text", lambda row: row.kind, "Kernel, copy, fill or collective.", 14),
        ColumnOf(
            "operator",
            "launched by",
            "text",
            lambda row: readable(row.operator),
            "The operator that launches most of it.",
            4,
            least=12,
        ),
        place_column(profile, none=lambda _: "", rank=4),
    ]


def _launch_sizes(text: str, low: int, high: int) -> str:
    """The commonest sizes, with `+` where other launches have others."""
    sizes = sizes_text(parsed(text))
    return sizes + ("+" if low != high else "")


def _range_words(low: int, high: int) -> str:
    """`32-64`, or the one number that all launches have."""
    return "" if not high else f"{low}" if low == high else f"{low}-{high}"


def _shared_words(row: Kernel) -> str:
    """Shared memory of a block, from the least to the most."""
    low, high = row.min_shared_memory_bytes, row.max_shared_memory_bytes
    return bytes_text(high) if low == high else f"{bytes_text(low) or 0}-{bytes_text(high)}"
