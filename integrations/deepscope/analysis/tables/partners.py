"""The lines that kernels of torch.compile were fused from together."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.records import Partner

_KEEP = 5
_LINES_OF_ONE = 50
"""Lines of one kernel that are looked at, those with most nodes."""


def fused_with(work: OwnedWork, counted: Mask, locations: list[Location]) -> dict[int, list[Partner]]:
    """The lines that each line shares kernels with, the largest share first; `counted` is as `Analysis` has it."""
    rows = np.flatnonzero(work.shared & counted & (work.location >= 0))
    if not len(rows):
        return {}
    width = len(locations)
    keys, inverse = np.unique(work.fused[rows] * width + work.location[rows], return_inverse=True)
    parts = np.zeros(len(keys), np.int64)
    np.add.at(parts, inverse.reshape(-1), work.duration_ns[rows])
    kernels: dict[int, list[tuple[int, int]]] = {}
    for key, part in zip(keys.tolist(), parts.tolist(), strict=True):
        kernels.setdefault(key // width, []).append((-part, key % width))
    shared: dict[int, dict[int, int]] = {}
    for lines in kernels.values():
        largest = sorted(lines)[:_LINES_OF_ONE]
        for _, line in largest:
            others = shared.setdefault(line, {})
            for part, other in largest:
                if other != line:
                    others[other] = others.get(other, 0) - part
    return {line: _partners(others, locations) for line, others in shared.items()}


def _partners(others: dict[int, int], locations: list[Location]) -> list[Partner]:
    largest = sorted(others.items(), key=lambda one: (-one[1], locations[one[0]].file, locations[one[0]].line))[:_KEEP]
    return [Partner(locations[line].file, locations[line].line, part) for line, part in largest]
