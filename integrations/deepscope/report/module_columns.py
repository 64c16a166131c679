"""The columns of the tree of modules."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import printable
from deepscope.records import Module, Profile
from deepscope.report.bars import share
from deepscope.report.column_kinds import counts, names, times
from deepscope.report.layout import Column, cut_end
from deepscope.report.module_tree import branch_name, depths, tree_order
from deepscope.report.style import Styles

_INDENT = "  "
_MODULE_WIDTH = 28


def module_columns(rows: Sequence[Module], profile: Profile, styles: Styles) -> list[Column]:
    """The columns for modules: totals with their forward and backward parts, then what is the module's own."""
    per_step = max(1, profile.totals.steps) * max(1, profile.totals.ranks)
    has_backward = any(row.total_backward_device_ns for row in rows)
    forward = [row.total_device_ns - row.total_backward_device_ns if has_backward else 0 for row in rows]
    is_tree = [row.path for row in rows] == [row.path for row in tree_order(rows)]
    paths = (
        [f"{_INDENT * depth}{branch_name(row)}" for row, depth in zip(rows, depths(rows), strict=True)]
        if is_tree
        else [row.path for row in rows]
    )
    classes = ["" if row.path.startswith(row.class_name) else row.class_name for row in rows]
    return [
        share([row.total_device_ns for row in rows], profile.totals.device_ns, styles),
        times("total", [row.total_device_ns for row in rows]),
        times("/step", [row.total_in_steps_ns / per_step if per_step > 1 else 0 for row in rows], rank=7),
        times("forward", forward, rank=1),
        times("backward", [row.total_backward_device_ns for row in rows], rank=1),
        times("self", [row.self_device_ns for row in rows], rank=2),
        times("CPU", [row.total_cpu_ns for row in rows], rank=3),
        counts("calls", [row.calls for row in rows], rank=4),
        counts("launches", [row.launches for row in rows], rank=8),
        counts("FLOPs", [row.total_flops for row in rows], rank=5),
        counts("parameters", [row.parameters for row in rows], rank=6),
        Column("module", [_shown(path) for path in paths], right=False, min_width=_MODULE_WIDTH, cut=cut_end),
        names("class", classes, min_width=10),
    ]


def _shown(path: str) -> str:
    """A path, its indentation kept."""
    return " " * (len(path) - len(path.lstrip(" "))) + printable(path.lstrip(" "))
