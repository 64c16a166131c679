"""The columns of the table of kernels: time, how they are launched, and how they fill the device."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import printable
from deepscope.quantities import bytes_text
from deepscope.records import Kernel, Profile
from deepscope.records.places import short_place
from deepscope.report.bars import share
from deepscope.report.column_kinds import counts, names, times
from deepscope.report.event_names import readable
from deepscope.report.layout import Column, cut_end, cut_start
from deepscope.report.shapes import parsed, sizes_text
from deepscope.report.style import Styles


def kernel_columns(rows: Sequence[Kernel], profile: Profile, styles: Styles) -> list[Column]:
    """The columns for kernels; what a trace does not tell has no column."""
    root = profile.trace.project_root
    places = [short_place(row.file, row.line, root) if row.file else "" for row in rows]
    return [
        share([row.device_ns for row in rows], profile.totals.device_ns, styles),
        times("device", [row.device_ns for row in rows]),
        counts("calls", [row.calls for row in rows], rank=1),
        times("mean", [row.mean_ns for row in rows], rank=2),
        times("max", [row.max_ns for row in rows], rank=3),
        Column("grid", [launch_sizes(row.grid, row.min_blocks, row.max_blocks) for row in rows], rank=7),
        Column("block", [launch_sizes(row.block, row.min_threads, row.max_threads) for row in rows], rank=8),
        Column("registers", [range_words(row.min_registers, row.max_registers) for row in rows], rank=9),
        Column("shared", [shared_words(row) for row in rows], rank=10),
        Column("occupancy", [_occupancy(row) for row in rows], rank=6),
        Column("blocks/SM", [_blocks(row) for row in rows], rank=11),
        Column("cores", ["yes" if row.uses_tensor_cores else "" for row in rows], rank=12),
        times("delay", [row.delay_ns / row.launched if row.launched else 0 for row in rows], rank=5),
        Column("queue", [_queue(row) for row in rows], rank=13),
        Column("kind", [row.kind for row in rows], rank=14, right=False),
        names("kernel", [readable(row.name) for row in rows]),
        Column(
            "launched by",
            [printable(readable(row.operator)) for row in rows],
            rank=4,
            right=False,
            min_width=12,
            cut=cut_end,
        ),
        Column("line", list(map(printable, places)), rank=4, right=False, min_width=12, cut=cut_start),
    ]


def launch_sizes(text: str, low: int, high: int) -> str:
    """The commonest sizes, with `+` where other launches have others."""
    sizes = sizes_text(parsed(text))
    return printable(sizes + ("+" if low != high else ""))


def range_words(low: int, high: int) -> str:
    """`32-64`, or the one number that all launches have."""
    return "" if not high else f"{low}" if low == high else f"{low}-{high}"


def shared_words(row: Kernel) -> str:
    """Shared memory of a block, from the least to the most."""
    low, high = row.min_shared_memory_bytes, row.max_shared_memory_bytes
    return bytes_text(high) if low == high else f"{bytes_text(low) or 0}-{bytes_text(high)}"


def _occupancy(row: Kernel) -> str:
    return f"{100 * row.occupied_ns / row.occupancy_known_ns:.0f}%" if row.occupancy_known_ns else ""


def _blocks(row: Kernel) -> str:
    return f"{row.sm_blocks_ns / row.sm_blocks_known_ns:.2f}" if row.sm_blocks_known_ns else ""


def _queue(row: Kernel) -> str:
    return f"{row.queued / row.launched:.1f}" if row.launched else ""
