"""The columns of the table of kernels: time, how they are launched, and how they fill the device."""

from __future__ import annotations

from deepscope.quantities import bytes_text
from deepscope.records import Kernel, Profile
from deepscope.report.event_names import readable
from deepscope.report.shapes import parsed, sizes_text
from deepscope.report.table_column import ColumnOf, field, place_column, share_column


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
