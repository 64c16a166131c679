"""A folder of Parquet files, one a table."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from deepscope.records.columns import ColumnTable
from deepscope.records.frames import arrow_table, wanted


def write_parquet_files(tables: Iterable[ColumnTable], folder: Path) -> list[str]:
    """Writes each table as `NAME.parquet`; one that comes again is a further row group. Gives the files' names.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    parquet = wanted("pyarrow.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Any] = {}
    with ExitStack() as open_files:
        for table in tables:
            found = arrow_table(table)
            name = f"{table.name}.parquet"
            if name not in writers:
                writers[name] = open_files.enter_context(
                    parquet.ParquetWriter(str(folder / name), found.schema, compression="zstd")
                )
            writers[name].write_table(found.cast(writers[name].schema))
    return list(writers)
