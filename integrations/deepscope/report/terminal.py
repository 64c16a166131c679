"""Tables and entries fitted to a terminal's width, and their colours.

Columns of a table leave in the order of their rank; texts are cut. An entry is a title and its text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

GAP = "  "
DOT = " · "
MIN_WIDTH = 40
ELLIPSIS = "…"

Style = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of printable texts.

    `rank` 0 always stands; of the others the lowest rank leaves last. A column with `min_width` may be cut down to it,
    the others stand whole or not at all.
    """

    title: str
    cells: Sequence[str]
    rank: int = 0
    right: bool = True
    min_width: int = 0
    cut: Callable[[str, int], str] | None = None
    styles: Sequence[Style | None] | None = None
    """One a cell, applied after all measuring; None leaves a cell plain."""

    @property
    def is_empty(self) -> bool:
        """Whether no cell says anything."""
        return not any(self.cells)

    @property
    def natural_width(self) -> int:
        """Width in terminal cells at which nothing is cut."""
        return max(cell_len(self.title), *map(cell_len, self.cells), 0)

    @property
    def least_width(self) -> int:
        """Width below which the column has to leave."""
        return min(self.natural_width, self.min_width) if self.min_width else self.natural_width


def shown_words(shown: int, of: int, *, what: str = "rows", rest: str = "-n 0 shows all") -> str:
    """`20 of 106 rows shown (-n 0 shows all)`; `rest` says how to see the others."""
    return f"{shown:,} of {of:,} {what} shown ({rest})"


def cell_len(text: str) -> int:
    """Width of a printable text in terminal cells; a wide character has two."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # few texts need it, and a server that renders no table none

    return wcswidth(text)


def render(columns: Sequence[TextColumn], width: int, *, title_style: Style | None = None) -> list[str]:
    """The lines of the table, its titles first, none wider than `width` (but for columns that always stand)."""
    chosen = _fit([column for column in columns if not column.is_empty], width)
    widths = _widths(chosen, width)
    titles = GAP.join(_cell(column, column.title, size) for column, size in zip(chosen, widths, strict=True)).rstrip()
    lines = [title_style(titles) if title_style else titles]
    rows = len(chosen[0].cells) if chosen else 0
    for row in range(rows):
        cells = []
        for column, size in zip(chosen, widths, strict=True):
            text = _cell(column, column.cells[row], size)
            style = column.styles[row] if column.styles else None
            cells.append(style(text) if style else text)
        lines.append(GAP.join(cells).rstrip())
    return lines


def cut_end(text: str, width: int) -> str:
    """The text with its end cut off to `width` cells: `return self.fc(x…`."""
    if cell_len(text) <= width:
        return text
    kept = ""
    size = 0
    for character in text:
        size += cell_len(character)
        if size > width - 1:
            break
        kept += character
    return kept + ELLIPSIS


def cut_start(text: str, width: int) -> str:
    """The text with its start cut off, at a `/` if one is near: `…/nn/model.py:42`."""
    if cell_len(text) <= width:
        return text
    kept = cut_end(text[::-1], width)[-2::-1]
    slash = kept.find("/")
    return ELLIPSIS + (kept[slash:] if 0 <= slash <= len(kept) // 2 else kept)


def _fit(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    left = width - sum(column.least_width + len(GAP) for column in columns if not column.rank) + len(GAP)
    kept = set()
    for column in sorted((column for column in columns if column.rank), key=lambda column: column.rank):
        need = column.least_width + len(GAP)
        if need <= left:
            left -= need
            kept.add(id(column))
    return [column for column in columns if not column.rank or id(column) in kept]


def _widths(columns: Sequence[TextColumn], width: int) -> list[int]:
    """Shares the rest of the width among columns that can be cut, evenly until one has all it wants."""
    widths = [column.least_width for column in columns]
    left = width - sum(widths) - len(GAP) * (len(columns) - 1)
    while left > 0:
        wanting = [place for place, column in enumerate(columns) if widths[place] < column.natural_width]
        if not wanting:
            break
        for place in wanting:
            share = max(1, left // len(wanting))
            more = min(share, columns[place].natural_width - widths[place], left)
            widths[place] += more
            left -= more
    return widths


def _cell(column: TextColumn, text: str, width: int) -> str:
    if cell_len(text) > width:
        text = (column.cut or cut_end)(text, width)
    blank = " " * (width - cell_len(text))
    return blank + text if column.right else text + blank


@dataclass(frozen=True, slots=True)
class Styles:
    """Styles by what they mean; without colour they leave a text as it is."""

    color: bool = False

    def title(self, text: str) -> str:
        """Names of columns and of the header's entries."""
        return self._wrapped("1", text)

    def heading(self, text: str) -> str:
        """Titles of sections."""
        return self._wrapped("1;36", text)

    def quiet(self, text: str) -> str:
        """What explains, and is read once."""
        return self._wrapped("2", text)

    def hot(self, text: str) -> str:
        """A fifth of all, or more."""
        return self._wrapped("1;31", text)

    def warm(self, text: str) -> str:
        """A twentieth of all, or more."""
        return self._wrapped("33", text)

    def good(self, text: str) -> str:
        """What became less."""
        return self._wrapped("32", text)

    def _wrapped(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


def wants_color(stream: TextIO) -> bool:
    """Whether the stream is a terminal that takes colours: `NO_COLOR` (https://no-color.org) and `TERM=dumb` say no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def entries_text(entries: Iterable[tuple[str, str]], width: int, styles: Styles) -> Iterator[str]:
    """The lines of entries: titles at the left, texts wrapped beside them; a title that comes again is not repeated."""
    listed = list(entries)
    indent = max((len(title) for title, _ in listed), default=0) + 2
    last = ""
    for title, text in listed:
        name = "" if title == last else title
        last = title
        for part in _wrapped(text, width - indent):
            yield styles.title(name) + " " * (indent - len(name)) + part
            name = ""


def _wrapped(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line
