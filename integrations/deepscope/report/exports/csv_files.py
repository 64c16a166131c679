"""A folder of CSV files, one a table."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deepscope.records.columns import Column, ColumnTable
from deepscope.report.csv_report import cell


def write_csv_files(tables: Iterable[ColumnTable], folder: Path) -> list[str]:
    """Writes each table as `NAME.csv`; one that comes again goes on below its rows. Gives the files' names.

    Cells are as in the report's CSV: flags are 0 and 1, what is lacking is empty, a text that a spreadsheet would run
    gets an apostrophe in front, and control characters are visible escapes.
    """
    written: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        name = f"{table.name}.csv"
        is_new = name not in written
        with (folder / name).open("w" if is_new else "a", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            if is_new:
                writer.writerow([column.name for column in table.columns])
                written.append(name)
            writer.writerows(zip(*map(_cells, table.columns), strict=True))
    return written


def _cells(column: Column) -> list[Any]:
    if column.words is not None:
        safe = [*map(cell, column.words), ""]  # -1 lands on the last place
        return [safe[code] for code in column.values]
    values = column.plain()
    if column.type == "text":
        return [cell(value) for value in values]
    if column.type == "flag":
        return ["" if value is None else int(value) for value in values]
    return ["" if value is None else value for value in values]
