"""Which part of a trace a Profile is of, and which tables stand in it that are too large to be always there."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import First, Sum, merged_by, record

PHASES = ("data", "forward", "backward", "optimizer", "other")
"""The phases of training, in the order of a step."""

Detail = Literal["shapes", "stacks"]
DETAILS: tuple[Detail, ...] = ("shapes", "stacks")
"""Operators by the shapes of their arguments, and by the lines that led to them."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a trace. Each view has a Profile of its own, in the cache too; the plain one is of all."""

    step: First[int | None] = None
    """Only this `ProfilerStep#N`."""
    phase: First[str] = ""
    """Only what was launched in this phase of training."""
    module: First[str] = ""
    """Only what ran in modules whose path this pattern matches, and in modules within them."""
    details: First[tuple[Detail, ...]] = ()
    """Tables that are worked out on demand."""

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves out some of the trace, or of the step."""
        return bool(self.phase or self.module)


WHOLE = View()
"""All of a trace, without further tables."""


class PartOf(msgspec.Struct, kw_only=True):
    """The whole that a filtered Profile is a part of: the trace, or the step."""

    view: Annotated[View, merged_by(record)]
    device_ns: Sum
    self_cpu_ns: Sum
    """Of all lines and of what ran on none."""
    wall_ns: Sum
