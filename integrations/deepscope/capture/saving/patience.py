"""How long a rank may wait for its own trace while others may be waiting for it in a collective."""

from __future__ import annotations

from deepscope.capture import torch_compat

LONGEST_S = 5.0
"""Enough for a small trace, which is whole then when the block has ended."""
_PART = 10
"""A tenth of the shortest time-out of any process group."""


def patience_s(world_size: int) -> float | None:
    """Seconds; None for as long as it takes, where nobody else is there."""
    if world_size < 2:
        return None
    shortest = torch_compat.shortest_timeout_s()
    return LONGEST_S if shortest is None else min(LONGEST_S, shortest / _PART)
