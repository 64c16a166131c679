"""All tables of a run: those of its Profile, then those of its traces' events, rank by rank."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables import EVENT_TABLES, event_table
from deepscope.records import Profile
from deepscope.records.columns import ColumnTable, RecordColumn, column_table, table_names
from deepscope.records.interchange import arrow_table, import_extra
from deepscope.report.json_csv import cell
from deepscope.store.load import recorded_rank
from deepscope.whole_files import whole_files


def all_tables(profile: Profile, analyses: Iterable[Analysis]) -> Iterator[ColumnTable]:
    """Each table of the Profile once, even if it is empty; then each table of events, once a rank, under one name."""
    for name in table_names(type(profile)):
        yield column_table(profile, name)
    for analysis in analyses:
        rank = recorded_rank(analysis)
        for name in EVENT_TABLES:
            yield event_table(analysis, name, rank=rank)


def write_csv_files(tables: Iterable[ColumnTable], folder: Path) -> list[str]:
    """Writes each table as `NAME.csv`; one that comes again goes on below its rows. Gives the files' names.

    Cells are as in the report's CSV: flags are 0 and 1, what is lacking is empty, a text that a spreadsheet would run
    gets an apostrophe in front, and control characters are visible escapes.
    """
    written: list[str] = []
    with whole_files(folder) as beside:
        for table in tables:
            name = f"{table.name}.csv"
            is_new = name not in written
            with (beside / name).open("w" if is_new else "a", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                if is_new:
                    writer.writerow([column.name for column in table.columns])
                    written.append(name)
                writer.writerows(zip(*map(_cells, table.columns), strict=True))
    return written


def _cells(column: RecordColumn) -> list[Any]:
    if column.words is not None:
        safe = [*map(cell, column.words), ""]  # -1 lands on the last place
        return [safe[code] for code in column.values]
    values = column.plain()
    if column.type == "text":
        return [cell(value) for value in values]
    if column.type == "flag":
        return ["" if value is None else int(value) for value in values]
    return ["" if value is None else value for value in values]


def write_parquet_files(tables: Iterable[ColumnTable], folder: Path) -> list[str]:
    """Writes each table as `NAME.parquet`; one that comes again is a further row group. Gives the files' names.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    parquet = import_extra("pyarrow.parquet")
    writers: dict[str, Any] = {}
    with whole_files(folder) as beside, ExitStack() as open_files:
        for table in tables:
            found = arrow_table(table)
            name = f"{table.name}.parquet"
            if name not in writers:
                writers[name] = open_files.enter_context(
                    parquet.ParquetWriter(str(beside / name), found.schema, compression="zstd")
                )
            writers[name].write_table(found.cast(writers[name].schema))
    return list(writers)


def profile_json(profile: Profile) -> str:
    """A JSON object with the fields of `records.Profile`, in ASCII: no name can steer a terminal."""
    return json.dumps(plain_record(profile), indent=1)


def plain_record(value: Any) -> Any:
    """Records as objects with named fields, those too that the cache keeps as arrays."""
    if isinstance(value, msgspec.Struct):
        return {name: plain_record(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, (list, tuple)):
        return [plain_record(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain_record(one) for key, one in value.items()}
    return value
