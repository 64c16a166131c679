"""The one place that speaks the protocol's positions: lines from 0, characters in the units agreed with the editor.

Everywhere else a line counts from 1 and a column is a number of code points from 0.
"""

from __future__ import annotations

from lsprotocol import types

from deepscope_lsp.engine.source_files import Buffer, Splice


class Units:
    """How characters are counted: UTF-16 code units unless the editor offers others."""

    def __init__(self, encoding: types.PositionEncodingKind | str | None = None) -> None:
        self._encoding = str(getattr(encoding, "value", encoding) or "utf-16")

    def column(self, text: str, character: int) -> int:
        """The column of a character in a line's text; inside a character it is the one that ends there."""
        if text.isascii() or self._encoding == "utf-32":
            return min(character, len(text))
        count = 0
        for column, letter in enumerate(text):
            if count >= character:
                return column
            count += self._width(letter)
        return len(text)

    def character(self, text: str, column: int) -> int:
        """The character of a column in a line's text."""
        if text.isascii() or self._encoding == "utf-32":
            return min(column, len(text))
        return sum(self._width(letter) for letter in text[:column])

    def _width(self, letter: str) -> int:
        if self._encoding == "utf-8":
            return len(letter.encode("utf-8", "surrogatepass"))
        return 2 if ord(letter) > 0xFFFF else 1


def line_of(position: types.Position) -> int:
    """The line, from 1."""
    return position.line + 1


def lines_of(region: types.Range) -> tuple[int, int]:
    """First and last line of a range, from 1."""
    return region.start.line + 1, region.end.line + 1


def line_start(line: int) -> types.Range:
    """The place before a line's first character."""
    place = types.Position(line - 1, 0)
    return types.Range(place, place)


def line_end(line: int, text: str, units: Units) -> types.Position:
    """Behind a line's last visible character."""
    return types.Position(line - 1, units.character(text, len(text.rstrip())))


def span(line: int, text: str, start: int, end: int, units: Units) -> types.Range:
    """A piece of one line, between two columns."""
    return types.Range(
        types.Position(line - 1, units.character(text, start)), types.Position(line - 1, units.character(text, end))
    )


def whole_line(line: int, text: str, units: Units) -> types.Range:
    """A line's text without the blanks around it."""
    return span(line, text, len(text) - len(text.lstrip()), len(text.rstrip()), units)


def apply_change(buffer: Buffer, change: types.TextDocumentContentChangeEvent, units: Units) -> Splice:
    """Applies one change of `didChange` to the buffer."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return buffer.set_text(change.text)
    start, end = change.range.start, change.range.end
    first, last = line_of(start), line_of(end)
    return buffer.replace(
        (first, units.column(buffer.line(first), start.character)),
        (last, units.column(buffer.line(last), end.character)),
        change.text,
    )
