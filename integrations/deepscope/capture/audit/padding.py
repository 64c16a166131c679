"""Which positions of a batch of sequences are padding, by the indices that an embedding is looked up with."""

from __future__ import annotations

from typing import NamedTuple

import torch

from deepscope.capture.audit.flow import Returned
from deepscope.capture.audit.operator_facts import is_plain

_LOOKUP = "aten::embedding"
_NO_PADDING = -1
_SHORTEST = 2
"""A run of the padding's index is as long, where the embedding itself names none."""
_KINDS = 8
"""So many different indices tell tokens from what has few kinds (segments)."""


class Lookup(NamedTuple):
    """A batch of sequences that rows of a table were looked up for."""

    rows: int
    length: int
    """Of each row, with its padding."""
    padded: int
    """Positions that are padding."""
    longest: int
    """The largest number of other positions in a row."""


def lookup_of(returned: Returned) -> Lookup | None:
    """What an operator looks up for several rows of indices; None where there is no padding to be seen."""
    args = returned.args
    if (
        returned.name != _LOOKUP
        or len(args) < 2
        or not is_plain(args[1])
        or args[1].dim() != 2
        or min(args[1].shape) < 2
    ):
        return None
    indices = args[1]
    padding = args[2] if len(args) > 2 else returned.kwargs.get("padding_idx", _NO_PADDING)
    is_padding = indices == padding if padding >= 0 else _runs(indices)
    padded = int(is_padding.sum())
    if not padded:
        return None
    return Lookup(indices.shape[0], indices.shape[1], padded, int((~is_padding).sum(dim=1).max()))


def _runs(indices: torch.Tensor) -> torch.Tensor:
    """Where rows end, or begin, with an index over and over that they have nowhere else; shape of `indices`.

    Nowhere in a square: that is a table of distances between positions rather than a batch.
    """
    nothing = torch.zeros_like(indices, dtype=torch.bool)
    if indices.shape[0] == indices.shape[1] or indices.unique().numel() < _KINDS:
        return nothing
    for ends, is_behind in ((indices.flip(1), True), (indices, False)):
        run = (ends == ends[:, :1]).cumprod(dim=1).bool()
        run &= run.sum(dim=1, keepdim=True) >= _SHORTEST
        first = ends[run[:, 1], 0]
        if first.numel():
            index = first.mode().values
            run &= ends == index
            if not ((ends == index) & ~run).sum(dim=1).gt(1).any():
                return run.flip(1) if is_behind else run
    return nothing
