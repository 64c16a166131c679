"""What a training framework costs on its own account."""

from __future__ import annotations

import msgspec

from deepscope.records.merging import First, Sum


class FrameworkPart(msgspec.Struct, kw_only=True):
    """One of the things that a framework does between the user's lines, where a line calls its loop."""

    framework: First[str]
    part: First[str]
    """`loops`, `logging`, `checkpoints`, `callback EarlyStopping`."""
    file: First[str]
    line: First[int]
    """The line that calls the loop; `cost_ns` there is with it."""
    cost_ns: Sum
    """The sum over the parts of a line is its `framework_ns`."""
