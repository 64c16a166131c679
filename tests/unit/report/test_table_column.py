"""How terminal and pages show a column that is defined once."""

import pytest

from deepscope.dashboard.page_answer import table_of
from deepscope.report.table_column import ColumnOf, cell_text, in_order, text_columns
from deepscope.report.terminal import Styles

_LONG = "project/with/a/path/of/many/folders/and/some/more/train.py:12"
_COLUMNS = (
    ColumnOf("name", "name", "text", lambda row: row["name"], least=8),
    ColumnOf("size", "size", "text", lambda row: row["size"], is_numeric=True),
    ColumnOf("number", "its number", "count", lambda row: row["number"], short="no.", is_name=True),
    ColumnOf("place", "line", "place", lambda row: row["place"], least=8),
)
_ROW = {"name": "mean 5ms", "size": "1.50KiB", "number": 0, "place": _LONG}


def test_a_terminal_has_texts_that_may_be_cut_last_and_short_titles() -> None:
    columns = text_columns(_COLUMNS, [_ROW], Styles(False))
    assert [(one.title, *one.cells) for one in columns] == [
        ("size", "1.50KiB"), ("no.", "0"), ("name", "mean 5ms"), ("line", _LONG),
    ]  # fmt: skip
    assert [one.right for one in columns] == [True, True, False, False]


def test_a_page_has_a_blank_before_units_but_not_in_names_and_ends_of_long_paths() -> None:
    table = table_of("some", "Some", _COLUMNS, [_ROW], place=lambda _: ("", 0))
    assert [one.title for one in table.columns] == ["name", "size", "line"], "a 0 in every row says nothing"
    assert table.rows == [["mean 5ms", "1.50 KiB", "…/more/train.py:12"]]


def test_a_terminal_says_once_what_rows_share_and_colours_what_stands_out() -> None:
    columns = (
        ColumnOf("of", "of", "text", lambda row: row[0], is_once=True),
        ColumnOf("size", "", "count", lambda row: row[1], heat=lambda row: "hot" if row[1] > 1 else ""),
    )
    rows = [("a", 1), ("a", 2), ("b", 3)]
    names, sizes = in_order(columns, rows, Styles(True))
    assert names.cells == ["a", "", "b"]
    assert [style and style("x") for style in sizes.styles or ()] == [None, "\x1b[1;31mx\x1b[0m", "\x1b[1;31mx\x1b[0m"]
    assert [one.title for one in table_of("some", "Some", columns, rows, place=lambda _: ("", 0)).columns] == ["of"]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (ColumnOf("a", "a", "count", lambda _: 0), 0, ""),
        (ColumnOf("a", "a", "count", lambda _: 0, shows_zero=True), 0, "0"),
        (ColumnOf("a", "a", "count", lambda _: 0, shows_zero=True), None, ""),
        (ColumnOf("a", "a", "count", lambda _: 0, is_name=True), 12_345, "12345"),
        (ColumnOf("a", "a", "time", lambda _: 0, is_signed=True), 3_100_000, "+3.10ms"),
        (ColumnOf("a", "a", "time", lambda _: 0, is_signed=True), -120_000, "-120µs"),
        (ColumnOf("a", "a", "time", lambda _: 0, is_signed=True), 0, "0"),
        (ColumnOf("a", "a", "time", lambda _: 0, shows_zero=True, none="-"), None, "-"),
        (ColumnOf("a", "a", "share", lambda _: 0), 0, "0%"),
        (ColumnOf("a", "rate", "bandwidth", lambda _: 0), 84_200_000_000, "84.2 GB/s"),
        (ColumnOf("a", "B/s", "bandwidth", lambda _: 0), 84_200_000_000, "84.2G"),
    ],
)
def test_a_cell_tells_nothing_from_zero_and_has_its_unit_once(column: ColumnOf, value: float | None, text: str) -> None:
    assert cell_text(column, value) == text
