"""What a rank does itself in its steps: its critical path without the collectives, by line, over time."""

from __future__ import annotations

import msgspec

from deepscope.records.merging import First, Sum


class OwnLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Own time of one line; the parts sum to that of all blocks."""

    line: First[int]
    """Index in `Profile.lines`; -1 for no line, -2 for all lines that have no row."""
    times_ns: First[list[int]]
    """By block."""
    operator_ns: Sum = 0
    """The CPU in operators, where no device is waited for."""
    python_ns: Sum = 0
    """The CPU outside of operators."""
    data_ns: Sum = 0
    """Loading data."""
    device_ns: Sum = 0
    """Kernels, fills and copies."""
    delay_ns: Sum = 0
    """Delays before work, and of calls that returned late."""


class OwnTimes(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Own times of one rank.

    A block is `Profile.steps_per_block` steps with neighbouring numbers. Over all rows, the times of a block and the
    communication in it sum to its steps' duration.
    """

    blocks: First[list[int]] = []
    """The numbers of its steps divided by `Profile.steps_per_block`, rounded down; [0] without steps."""
    steps: First[list[int]] = []
    """Of each block how many steps are in it."""
    wall_ns: First[list[int]] = []
    """By block, the duration of its steps."""
    communication_ns: First[list[int]] = []
    """The part of it in communication, on the critical path."""
    lines: First[list[OwnLine]] = []
    """The longest first; then those of no line and of all other lines."""
