"""Point-to-point messages as a matrix: senders down, receivers across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deepscope.quantities import bytes_text, time_text
from deepscope.ranks.results import PairRow
from deepscope.report.layout import Column, Style, render
from deepscope.report.style import Styles

LARGEST = 8
"""Ranks that a matrix can have; of more the largest pairs are listed."""


def fits(rows: Sequence[PairRow]) -> bool:
    """Whether so few ranks take part that a matrix is to be read."""
    return len(_ranks(rows)) <= LARGEST


def pair_matrix(rows: Sequence[PairRow], width: int, styles: Styles) -> Iterator[str]:
    """Two of them: the bytes that were sent, and the time that it took."""
    yield from _matrix("bytes", {(row.source, row.target): bytes_text(row.bytes) for row in rows}, rows, width, styles)
    yield ""
    yield from _matrix("time", {(row.source, row.target): time_text(row.time_ns) for row in rows}, rows, width, styles)


def _matrix(
    title: str, texts: dict[tuple[int, int], str], rows: Sequence[PairRow], width: int, styles: Styles
) -> Iterator[str]:
    ranks = _ranks(rows)
    most = max((row.time_ns for row in rows), default=0)
    hot = {(row.source, row.target) for row in rows if most and row.time_ns == most}
    columns = [Column(title, [f"from {rank}" for rank in ranks], right=False)]
    for target in ranks:
        cells = [texts.get((source, target), "·") or "0" for source in ranks]
        heat: list[Style | None] = [styles.warm if (source, target) in hot else None for source in ranks]
        columns.append(Column(f"to {target}", cells, styles=heat))
    yield from render(columns, width, title_style=styles.title)


def _ranks(rows: Sequence[PairRow]) -> list[int]:
    return sorted({rank for row in rows for rank in (row.source, row.target)})
