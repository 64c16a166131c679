"""Shares as numbers and as bars."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.quantities import share_text
from deepscope.report.layout import Column, Style
from deepscope.report.style import Styles

_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDTHS = ((140, 12), (100, 8), (0, 4))
"""From this width of the table on, so many cells."""


def share(values: Sequence[float], whole: float, styles: Styles) -> Column:
    """The parts of a whole in percent; the large ones stand out."""
    return Column("share", [share_text(value, whole) for value in values], styles=_heat(values, whole, styles))


def shares(values: Sequence[int], whole: int, width: int, styles: Styles) -> list[Column]:
    """The parts of a whole in percent, and as bars of which the longest fills its cells."""
    cells = next(cells for least, cells in _WIDTHS if width >= least)
    largest = max(values, default=0)
    texts = [bar(value, largest, cells) for value in values] if whole and len(values) > 1 else [""] * len(values)
    bars = Column("", texts, rank=1, right=False, styles=_heat(values, whole, styles))
    return [share(values, whole, styles), bars]


def bar(value: int, largest: int, cells: int) -> str:
    """`███▌`: so many eighths of `cells`; nothing for less than half an eighth."""
    eighths = round(8 * cells * value / largest) if value > 0 and largest > 0 else 0
    full, rest = divmod(eighths, 8)
    return "█" * full + _EIGHTHS[rest].strip()


def _heat(values: Sequence[float], whole: float, styles: Styles) -> list[Style | None]:
    return [
        styles.hot if whole and value >= whole / 5 else styles.warm if whole and value >= whole / 20 else None
        for value in values
    ]
