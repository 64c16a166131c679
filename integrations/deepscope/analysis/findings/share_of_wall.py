"""A device's time as a part of the wall time."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.findings.facts import Facts
from deepscope.trace.model import Int64


def share_of_wall(facts: Facts, spent_ns: Int64) -> Int64:
    """What some work on the devices takes of the wall time, in ns; shape of `spent_ns`.

    With several devices it is divided by their number. Where the devices are behind the CPU, their work outlasts the
    window: then the wall time is all theirs, and each piece has its share of it.
    """
    if not facts.has_device:
        return spent_ns
    whole = int(facts.work.duration_ns[facts.analysis.counted].sum())
    part = min(1.0, facts.wall_ns * facts.devices / max(whole, 1))
    return np.asarray((spent_ns * part).astype(np.int64) // facts.devices)
