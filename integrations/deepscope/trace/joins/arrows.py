"""Arrows between events (flow events), joined by their ids."""

from __future__ import annotations

import numpy as np

from deepscope.trace.arrays import first_with
from deepscope.trace.model import Flows, Int64


def arrow_ends(arrows: Flows) -> tuple[Int64, Int64]:
    """Tail and head of each arrow that has both (rows of `arrows`); several heads may have one tail."""
    tails, heads = np.flatnonzero(arrows.is_start), np.flatnonzero(~arrows.is_start)
    at = first_with(arrows.id[tails], arrows.id[heads])
    return tails[at[at >= 0]], heads[at >= 0]
