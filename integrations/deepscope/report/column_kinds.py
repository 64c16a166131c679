"""Columns of one kind of number: times, counts."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.quantities import count_text, time_text
from deepscope.report.layout import Column

WHERE_WIDTH = 16


def times(title: str, values: Sequence[float], rank: int = 0) -> Column:
    """Times; "" for 0."""
    return Column(title, [time_text(value) for value in values], rank=rank)


def counts(title: str, values: Sequence[int], rank: int = 0) -> Column:
    """Counts; "" for 0."""
    return Column(title, [count_text(value) for value in values], rank=rank)
