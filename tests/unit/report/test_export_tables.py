"""A Profile as tables: every record comes out, sums stay, and independent readers read it."""

from __future__ import annotations

import csv
import errno
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow.parquet
import pytest

import built_profiles
from deepscope.errors import MissingExtraError, OptionError
from deepscope.records import Profile
from deepscope.records.columns import ColumnTable, RecordColumn, column_table, table_names
from deepscope.report.exports.tables import profile_json, write_csv_files, write_parquet_files

PROFILES = {
    "training": built_profiles.training(),
    "cpu": built_profiles.cpu_only(),
    "memory": built_profiles.with_memory(),
    "hostile": built_profiles.hostile(),
}


def tables_of(profile: Profile) -> list[ColumnTable]:
    return [column_table(profile, name) for name in table_names(Profile)]


@pytest.mark.parametrize("name", PROFILES)
def test_every_value_of_a_profile_stands_in_some_table(name: str) -> None:
    profile = PROFILES[name]
    found = {str(value) for table in tables_of(profile) for column in table.columns for value in column.plain()}
    lists: list[str] = []

    def walk(value: object, text: str) -> None:
        if isinstance(value, msgspec.Struct):
            for field in value.__struct_fields__:
                walk(getattr(value, field), f"{text}.{field}")
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], msgspec.Struct):
            for one in value:
                walk(one, text)
        elif isinstance(value, dict) and all(
            isinstance(one, msgspec.Struct) or type(one) in (int, float) for one in value.values()
        ):
            for key, one in value.items():
                walk(one, text)
                if text != ".evidence" and not text.endswith((".evidence", ".recording")):
                    walk(key, f"{text} key")
        elif isinstance(value, (list, tuple, dict)) or text.endswith((".evidence", ".recording")) or "evidence" in text:
            lists.append(text)
        elif "recording" not in text:
            assert str(value) in found, text

    walk(profile, "")


def test_a_row_says_first_what_it_is_of() -> None:
    names = [column.name for column in column_table(PROFILES["training"], "lines").columns]
    assert names[:4] == ["file", "line", "function", "exact"]
    assert {"self_device_ns", "why_short_ns", "spread_max_rank"} <= set(names)


def test_an_inner_table_names_the_row_that_it_is_in() -> None:
    profile = PROFILES["training"]
    inner = column_table(profile, "lines_libraries")
    assert inner.column("lines_row").plain() == [0, 0]
    assert inner.column("module").plain() == [one.module for one in profile.lines[0].libraries]
    phases = column_table(profile, "steps_phases")
    assert [column.name for column in phases.columns] == ["steps_row", "key", "value"]
    assert sum(phases.column("value").plain()) == sum(step.duration_ns for step in profile.steps)


def test_what_is_lacking_is_none() -> None:
    spread = column_table(PROFILES["training"], "lines").column("spread_max_ns")
    assert spread.is_optional
    assert set(spread.plain()) == {None}
    assert len(column_table(PROFILES["cpu"], "peaks")) == 0


def test_an_unknown_table_is_told_with_those_that_there_are() -> None:
    with pytest.raises(OptionError, match=r"table='rows': no such table; there are: profile, trace, totals, lines"):
        PROFILES["training"].to_pandas("rows")


@pytest.mark.parametrize("name", PROFILES)
def test_pandas_and_arrow_have_the_tables_numbers(name: str) -> None:
    profile = PROFILES[name]
    for table in tables_of(profile):
        frame, arrow = table.to_pandas(), table.to_arrow()
        assert (len(frame), arrow.num_rows) == (len(table), len(table))
        assert list(frame.columns) == arrow.column_names == [column.name for column in table.columns]
        for column in table.columns:
            if column.type == "integer":
                values = [value for value in column.plain() if value is not None]
                assert int(frame[column.name].sum()) == sum(values)
                assert (arrow[column.name].combine_chunks().drop_null().to_pylist()) == values
                assert (arrow.schema.field(column.name).metadata or {}).get(b"unit", b"").decode() == column.unit
    lines = profile.to_pandas("lines")
    assert int(lines["self_device_ns"].sum()) + profile.no_line.self_device_ns == profile.totals.device_ns


def test_codes_and_absent_numbers_read_as_words_and_nothing() -> None:
    table = ColumnTable(
        "t",
        (
            RecordColumn("word", "text", [1, -1, 0, 1], words=["a", "b"], is_optional=True),
            RecordColumn("at_ns", "integer", [5, -1, 7, 0], is_optional=True, absent=-1),
        ),
    )
    assert table.column("word").plain() == ["b", None, "a", "b"]
    assert table.to_arrow().to_pydict() == {"word": ["b", None, "a", "b"], "at_ns": [5, None, 7, 0]}
    frame = table.to_pandas()
    assert frame["at_ns"].isna().tolist() == [False, True, False, False]
    assert frame["word"].astype(object).where(frame["word"].notna(), None).tolist() == ["b", None, "a", "b"]


def test_sums_beyond_64_bits_become_floats_and_words_that_utf8_has_not_are_escaped() -> None:
    table = ColumnTable(
        "t", (RecordColumn("flops", "integer", [1 << 70, 3]), RecordColumn("name", "text", ["\ud800", "b"]))
    )
    assert table.to_arrow().to_pydict() == {"flops": [float(1 << 70), 3.0], "name": ["\\ud800", "b"]}
    assert table.to_pandas()["flops"].tolist() == [1 << 70, 3]


@pytest.mark.parametrize("name", PROFILES)
def test_csv_files_are_read_back_by_the_csv_module(name: str, tmp_path: Path) -> None:
    profile = PROFILES[name]
    written = write_csv_files(tables_of(profile), tmp_path)
    assert sorted(written) == sorted(path.name for path in tmp_path.iterdir())
    for table in tables_of(profile):
        with (tmp_path / f"{table.name}.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == len(table)
        for column in table.columns:
            cells = [row[column.name] for row in rows]
            if column.type in ("integer", "flag"):
                assert [int(cell) if cell else None for cell in cells] == column.plain()
            assert all(cell.isprintable() for cell in cells)
            if column.type == "text":
                assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in cells)


@pytest.mark.parametrize("name", PROFILES)
def test_parquet_files_are_read_back_by_pyarrow(name: str, tmp_path: Path) -> None:
    tables = tables_of(PROFILES[name])
    write_parquet_files(tables, tmp_path)
    for table in tables:
        found = pyarrow.parquet.read_table(tmp_path / f"{table.name}.parquet")
        assert found.num_rows == len(table)
        for column in table.columns:
            if column.type != "text":
                assert found[column.name].to_pylist() == column.plain()


def test_a_table_that_comes_again_goes_on_below(tmp_path: Path) -> None:
    def table(rank: int) -> ColumnTable:
        return ColumnTable(
            "t",
            (
                RecordColumn("rank", "integer", [rank, rank]),
                RecordColumn("name", "text", [0, 1], words=["a", f"b{rank}"]),
            ),
        )

    write_csv_files([table(0), table(1)], tmp_path)
    write_parquet_files([table(0), table(1)], tmp_path)
    assert (tmp_path / "t.csv").read_text() == "rank,name\n0,a\n0,b0\n1,a\n1,b1\n"
    found = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert found == {"rank": [0, 0, 1, 1], "name": ["a", "b0", "a", "b1"]}


@pytest.mark.parametrize("write", [write_csv_files, write_parquet_files])
def test_tables_that_cannot_be_written_whole_leave_the_folder_as_it_was(
    tmp_path: Path, write: Callable[[Iterable[ColumnTable], Path], list[str]]
) -> None:
    (tmp_path / "lines.csv").write_text("before")

    def full_disk() -> Iterator[ColumnTable]:
        yield column_table(PROFILES["training"], "lines")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write(full_disk(), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"lines.csv": "before"}


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_without_the_package_one_line_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ask = PROFILES["training"].to_pandas if package == "pandas" else PROFILES["training"].to_arrow
    with pytest.raises(
        MissingExtraError, match=rf"^{package} is not installed; run: pip install 'deepscope\[tables\]'$"
    ):
        ask("lines")


@pytest.mark.parametrize("name", PROFILES)
def test_json_is_the_whole_profile(name: str) -> None:
    profile = PROFILES[name]
    text = profile_json(profile)
    assert text.isascii()
    document = msgspec.json.decode(text.replace("\\ud800", "?").encode())
    assert set(document) == set(Profile.__struct_fields__)
    assert sum(line["self_device_ns"] for line in [*document["lines"], document["no_line"]]) == profile.totals.device_ns
    for line, record in zip(document["lines"], profile.lines, strict=True):
        assert [top["name"] for top in line["top_kernels"]] == [top.name for top in record.top_kernels]
    for node, record in zip(document["call_tree"], profile.call_tree, strict=True):
        assert node["self_device_ns"] == record.self_device_ns


def test_a_notebook_shows_the_lines_as_escaped_text() -> None:
    shown = PROFILES["training"]._repr_html_()
    assert "<td>nets/model.py:42</td><td>Net.forward</td>" in shown
    assert "self.attention(x, mask=mask)" in shown
    profile = built_profiles.hostile()
    profile.lines[0].function = "<script>alert(1)</script>\u202e\x1b"
    shown = profile._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x1b" in shown
