"""Which line made a rank late: the difference of its critical path to the median of the others, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.ranks.lateness import LATE, Lateness, steady_lateness
from deepscope.ranks.medians import Floats, above_others
from deepscope.ranks.own_table import LineKey, OwnTable

_LOOKED_AT = 0.2
"""Of what makes a rank late: lines that are above the others on no rank by this share of it are not looked at by
step."""


@dataclass(frozen=True, slots=True)
class LateLines:
    """Lines by step on all ranks, those that are longer on some rank than on the others."""

    keys: list[LineKey]
    excess: Floats
    """Above the median of the others; shape (r, b, l)."""
    weights: Floats
    late: list[dict[int, Lateness]]
    """Of each line the ranks (places) on which it is longer beyond noise."""

    def of_rank(self, rank: int) -> dict[LineKey, Lateness]:
        """The lines that are longer on a rank beyond noise."""
        return {key: of[rank] for key, of in zip(self.keys, self.late, strict=True) if rank in of}

    def above(self, rank: int, during: npt.NDArray[np.bool_]) -> dict[LineKey, float]:
        """By how much each line is above the others' median in these blocks, summed, a step over all steps."""
        weights = np.where(during, self.weights, 0)
        found = weights @ self.excess[rank] / self.weights.sum()
        return dict(zip(self.keys, found.tolist(), strict=True))


def late_lines(table: OwnTable, also: Sequence[int] = ()) -> LateLines:
    """The lines that may have made ranks late; of the ranks (places) `also` the longest ones in any case."""
    above = above_others(table.lines)
    limit = _LOOKED_AT * LATE * table.step_ns
    chosen = set(np.flatnonzero(above.max(axis=0) >= limit).tolist())
    for rank in also:
        chosen |= set(np.argsort(-above[rank])[:10].tolist())
    keys = [table.keys[place] for place in sorted(chosen)]
    times = table.times_of(keys)
    excess = above_others(times)
    late = [steady_lateness(times[:, :, place], table.weights, table.step_ns) for place in range(len(keys))]
    return LateLines(keys, excess, table.weights, late)
