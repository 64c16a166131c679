"""Tables of columns in the tools that people use Python with: pandas and Arrow, both optional."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from deepscope.errors import MissingExtraError
from deepscope.records.columns import ColumnTable, RecordColumn

_EXTRA = "tables"


def import_extra(package: str, extra: str = _EXTRA) -> Any:
    """An optional package.

    Raises:
        MissingExtraError: it is not installed; the message names the command that brings it.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package.partition(".")[0]:
            raise
        raise MissingExtraError(package.partition(".")[0], extra) from error


def arrow_table(table: ColumnTable) -> Any:
    """A `pyarrow.Table`: texts with few distinct words as dictionaries, units in the fields' metadata."""
    arrow = import_extra("pyarrow")
    arrays = [_arrow_array(arrow, column) for column in table.columns]
    fields = [
        arrow.field(column.name, array.type, metadata={"unit": column.unit} if column.unit else None)
        for column, array in zip(table.columns, arrays, strict=True)
    ]
    return arrow.table(arrays, schema=arrow.schema(fields))


def _arrow_array(arrow: Any, column: RecordColumn) -> Any:
    if column.words is not None:
        import numpy as np

        codes = np.asarray(column.values)
        return arrow.DictionaryArray.from_arrays(
            arrow.array(codes, arrow.int32(), mask=codes < 0),
            arrow.array(_encodable(column.words), arrow.string()),
        )
    kind = {"integer": arrow.int64, "number": arrow.float64, "text": arrow.string, "flag": arrow.bool_}[column.type]()
    values = _encodable(column.plain()) if column.type == "text" else column.values
    if column.absent is not None:
        return arrow.array(values, kind, mask=_is_absent(column))
    try:
        return arrow.array(values, kind)
    except OverflowError:  # a hostile trace's sums may leave 64 bits
        return arrow.array([None if value is None else float(value) for value in column.plain()], arrow.float64())


def pandas_frame(table: ColumnTable) -> Any:
    """A `pandas.DataFrame`: whole numbers as `int64`, or `Int64` where some are lacking."""
    pandas = import_extra("pandas")
    return pandas.DataFrame({column.name: _series(pandas, column) for column in table.columns})


def _series(pandas: Any, column: RecordColumn) -> Any:
    if column.words is not None:
        return pandas.Categorical.from_codes(column.values, _distinct(column.words))
    if column.type == "text":
        return pandas.Series(_encodable(column.plain()), dtype=object)
    kind = {"integer": "int64", "number": "float64", "flag": "bool"}[column.type]
    if column.absent is not None:
        import numpy as np

        return pandas.arrays.IntegerArray(np.asarray(column.values, np.int64), _is_absent(column))
    if column.is_optional:
        kind = {"int64": "Int64", "float64": "Float64", "bool": "boolean"}[kind]
    try:
        return pandas.Series(column.values, dtype=kind)
    except OverflowError:
        return pandas.Series(column.plain(), dtype=object)


def _is_absent(column: RecordColumn) -> Any:
    import numpy as np

    return np.asarray(column.values) == column.absent


def _encodable(texts: Sequence[str | None]) -> list[str | None]:
    """Lone surrogates, which UTF-8 has not, as visible escapes."""
    return [None if text is None else text.encode("utf-8", "backslashreplace").decode("utf-8") for text in texts]


def _distinct(words: Sequence[str]) -> list[str | None]:
    """Categories must differ; what would read like an earlier one is marked by its number."""
    found: dict[str | None, None] = {}
    for number, word in enumerate(_encodable(words)):
        found[word if word not in found else f"{word}#{number}"] = None
    return list(found)
