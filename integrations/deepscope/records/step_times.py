"""The time that rows of a profile had in each step: what a comparison takes their spread from."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from deepscope.records.merging import First, keys_summed, merged_by

if TYPE_CHECKING:
    from deepscope.records.profile import Profile

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


def steps_of_blocks(profile: Profile) -> dict[int, int]:
    """Block → how many steps of the profile are in it, in order of time."""
    counts: dict[int, int] = {}
    for step in profile.steps:
        block = step.number // profile.steps_per_block
        counts[block] = counts.get(block, 0) + 1
    return dict(sorted(counts.items()))


def merged_step_times(profiles: Sequence[Profile], merged: Profile) -> list[StepTimes]:
    """Those of several ranks summed by block, the blocks as long as `merged.steps_per_block` says."""
    places = {
        table: {attrgetter(*key)(row): place for place, row in enumerate(getattr(merged, table))}
        for table, key in ROW_KEYS.items()
    }
    found: dict[tuple[StepTable, int], StepTimes] = {}
    for profile in profiles:
        shorter = max(1, merged.steps_per_block // profile.steps_per_block)
        rows_of: dict[StepTable, list[Any]] = {}
        for one in profile.step_times:
            if one.table not in rows_of:  # of an encoded profile it is decoded for this
                rows_of[one.table] = getattr(profile, one.table)
            key_of = attrgetter(*ROW_KEYS[one.table])
            place = -1 if one.row < 0 else places[one.table][key_of(rows_of[one.table][one.row])]
            row = found.setdefault((one.table, place), StepTimes(one.table, place, {}, {}))
            for into, times in ((row.device_ns, one.device_ns), (row.beside_ns, one.beside_ns)):
                for block, duration_ns in times.items():
                    into[block // shorter] = into.get(block // shorter, 0) + duration_ns
    return list(found.values())
