"""The buffer and the protocol's positions, against a text kept as one string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from deepscope.records.source_files import source_lines
from deepscope.remap import LineMap
from deepscope_lsp.engine.source_files import Buffer
from deepscope_lsp.positions import Units, apply_change, line_end, span, whole_line

LETTERS = st.text(st.sampled_from("ab é😀\n\r\f\u2028\t"), max_size=12)
UNITS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


def units_of(text: str, encoding: str) -> int:
    return len(text.encode(UNITS[encoding])) // WIDTH[encoding]


@given(LETTERS, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), LETTERS), max_size=5),
       st.sampled_from(sorted(UNITS)))  # fmt: skip
def test_incremental_changes_give_the_text_that_the_editor_has(
    start: str, edits: list[tuple[int, int, str]], encoding: str
) -> None:
    text = start
    buffer = Buffer(text)
    original = list(buffer.lines)
    line_map = LineMap(original, buffer.lines)
    units = Units(encoding)
    for first, last, fresh in edits:
        first, last = sorted((expressible(text, first), expressible(text, last)))
        change = types.TextDocumentContentChangePartial(
            range=types.Range(*(position(text, place, encoding) for place in (first, last))), text=fresh
        )
        text = text[:first] + fresh + text[last:]
        splice = apply_change(buffer, change, units)
        line_map.spliced(splice.start, splice.removed, splice.inserted)
        assert buffer.lines == source_lines(text)
        for line in range(1, len(buffer.lines) + 1):
            home = line_map.recorded_line(line)
            assert home is None or original[home - 1].lstrip(" \t\f") == buffer.line(line).lstrip(" \t\f")


def expressible(text: str, place: int) -> int:
    """The place, but for one within a `\\r\\n`, which the protocol's positions cannot name."""
    place = min(place, len(text))
    return place - (text[place - 1 : place + 1] == "\r\n")


def position(text: str, place: int, encoding: str) -> types.Position:
    before = source_lines(text[:place])
    return types.Position(len(before) - 1, units_of(before[-1], encoding))


def change_at(
    line: int, character: int, text: str, end: tuple[int, int] | None = None
) -> types.TextDocumentContentChangePartial:
    start = types.Position(line, character)
    return types.TextDocumentContentChangePartial(types.Range(start, types.Position(*end) if end else start), text)


def test_a_carriage_return_before_a_line_feed_moves_no_line() -> None:
    buffer = Buffer("a = 1\nb = 2\nc = 3")
    lines = LineMap(list(buffer.lines), buffer.lines)
    splice = apply_change(buffer, change_at(0, 5, "\r"), Units())
    lines.spliced(splice.start, splice.removed, splice.inserted)
    assert buffer.lines == ["a = 1", "b = 2", "c = 3"]
    assert lines.is_unchanged
    apply_change(buffer, change_at(1, 5, "", (2, 0)), Units())
    assert buffer.lines == ["a = 1", "b = 2c = 3"]


def test_places_outside_the_text_are_taken_to_its_nearest_end() -> None:
    buffer = Buffer("one\ntwo")
    region = types.Range(types.Position(1, 99), types.Position(77, 5))
    apply_change(buffer, types.TextDocumentContentChangePartial(range=region, text="!"), Units())
    assert buffer.lines == ["one", "two!"]
    backwards = types.Range(types.Position(1, 2), types.Position(0, 0))
    apply_change(buffer, types.TextDocumentContentChangePartial(range=backwards, text="-"), Units())
    assert buffer.lines == ["one", "tw-o!"]


def test_a_whole_new_text_replaces_all_lines() -> None:
    buffer = Buffer("a\nb")
    splice = apply_change(buffer, types.TextDocumentContentChangeWholeDocument(text="b\r\nc"), Units())
    assert buffer.lines == ["b", "c"]
    assert (splice.start, splice.removed, splice.inserted) == (1, ["a", "b"], 2)


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 8), ("utf-16", 5), ("utf-32", 4), (None, 5)])
def test_a_line_ends_where_the_editor_counts_it(encoding: str | None, character: int) -> None:
    units = Units(encoding)
    assert line_end(3, "é😀ab  ", units) == types.Position(2, character)
    assert units.column("é😀ab", character - 2) == 2


def test_ranges_of_lines_leave_the_blanks_out() -> None:
    assert whole_line(2, "    x = 1  ", Units()) == types.Range(types.Position(1, 4), types.Position(1, 9))
    assert span(1, "😀x", 1, 2, Units()) == types.Range(types.Position(0, 2), types.Position(0, 3))
