"""Columns of one kind of number or text: times, counts, sizes, rates, names."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, time_text
from deepscope.report.layout import Column, cut_end

WHERE_WIDTH = 16


def times(title: str, values: Sequence[float], rank: int = 0) -> Column:
    """Times; "" for 0."""
    return Column(title, [time_text(value) for value in values], rank=rank)


def counts(title: str, values: Sequence[int], rank: int = 0) -> Column:
    """Counts; "" for 0."""
    return Column(title, [count_text(value) for value in values], rank=rank)


def names(title: str, texts: Sequence[str], min_width: int = WHERE_WIDTH) -> Column:
    """Foreign names, cut at their end where there is no room."""
    return Column(title, [printable(name) for name in texts], right=False, min_width=min_width, cut=cut_end)


def sizes(title: str, values: Sequence[int], rank: int = 0) -> Column:
    """Bytes; "" for 0."""
    return Column(title, [bytes_text(value) for value in values], rank=rank)
