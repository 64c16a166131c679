"""How terminal and pages show a column that is defined once."""

import pytest

from deepscope.dashboard.pages.tables import table_of
from deepscope.report.style import Styles
from deepscope.report.table_column import ColumnOf, cell_text, text_columns

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


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (ColumnOf("a", "a", "count", lambda _: 0), 0, ""),
        (ColumnOf("a", "a", "count", lambda _: 0, shows_zero=True), 0, "0"),
        (ColumnOf("a", "a", "count", lambda _: 0, shows_zero=True), None, ""),
        (ColumnOf("a", "a", "count", lambda _: 0, is_name=True), 12_345, "12345"),
        (ColumnOf("a", "a", "share", lambda _: 0), 0, "0%"),
        (ColumnOf("a", "rate", "bandwidth", lambda _: 0), 84_200_000_000, "84.2 GB/s"),
        (ColumnOf("a", "B/s", "bandwidth", lambda _: 0), 84_200_000_000, "84.2G"),
    ],
)
def test_a_cell_tells_nothing_from_zero_and_has_its_unit_once(column: ColumnOf, value: float | None, text: str) -> None:
    assert cell_text(column, value) == text
