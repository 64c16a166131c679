"""The time that rows of a profile had in each step: what a comparison takes their spread from."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import First, keys_summed, merged_by

StepTable = Literal["lines", "operators", "kernels", "modules"]

ROW_KEYS: dict[StepTable, tuple[str, ...]] = {
    "lines": ("file", "line", "function", "exact"),
    "operators": ("name",),
    "kernels": ("name", "kind"),
    "modules": ("path", "class_name"),
}
"""What names a row of each table."""


_Times = Annotated[dict[int, int], merged_by(keys_summed)]


class StepTimes(msgspec.Struct, array_like=True):
    """One row's time by step. What it had outside the steps is the rest of its number.

    A block is `Profile.steps_per_block` steps with neighbouring numbers; its key is their number divided by that many,
    rounded down. A block without time is left out.
    """

    table: First[StepTable]
    row: First[int]
    """Index in that table of the profile; -1 for the work of no line."""
    device_ns: _Times
    """Block → part of `self_device_ns` (of a kernel, of `device_ns`)."""
    beside_ns: _Times = {}
    """Of a line: block → part of `idle_ns` or, where the CPU is the device, of `python_ns`: the rest of its cost."""
