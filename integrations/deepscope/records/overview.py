"""The overview: how a step's time is split, how well devices are used, why they idle."""

from __future__ import annotations

from typing import Literal

import msgspec

from deepscope.records.merging import First, Sum

Section = Literal["step", "span", "overlap", "idle", "device"]


class OverviewRow(msgspec.Struct, kw_only=True):
    """One figure of the overview: a time, and the time that it is a part of."""

    section: First[Section]
    """`step`: the split of the steps' time. `span`: from the first to the last work. `overlap`: of collectives with
    computation. `idle`: the gaps of streams by their cause. `device`: how a device is used."""
    device: First[str] = ""
    """Of the section `device`."""
    name: First[str]
    time_ns: Sum
    whole_ns: Sum
    steps: Sum = 0
    """Of the section `step`: over how many steps its times sum."""
    dashboard_ns: Sum = 0
    """The same as torch-tb-profiler shows it, which no longer knows all categories of events; so the next two."""
    dashboard_whole_ns: Sum = 0
    dashboard_steps: Sum = 0
