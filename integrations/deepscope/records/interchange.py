"""A Profile in the tools that people use Python with: tables for pandas and Arrow, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepscope.errors import MissingExtraError
from deepscope.printable import printable
from deepscope.records.columns import ColumnTable, RecordColumn
from deepscope.records.costs import Costs
from deepscope.records.lines import NO_LINE

if TYPE_CHECKING:
    from deepscope.records.numbers import Numbers
    from deepscope.records.profile import Profile

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


_ROWS = 15


def notebook_table(profile: Profile) -> str:
    """The lines by cost, what no line has, and where the numbers come from; no markup of the trace's own."""
    device = "device" if profile.metric == "device" else "operators"
    titles = ("line", "function", "cost", f"{device}, ms", "idle, ms", "CPU, ms", "calls", "source")
    costs = Costs.of(profile)
    lines = costs.ranked(profile.lines)
    rows = [
        _row([f"{_short(one.file)}:{one.line}", one.function, *_figures(one, costs), (one.text or "").strip()])
        for one in lines[:_ROWS]
    ]
    rows.append(_row([NO_LINE, "", *_figures(profile.no_line, costs), ""]))
    if len(lines) > _ROWS:
        rows.append(_row([f"({len(lines) - _ROWS} more lines)", *[""] * 7]))
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    totals = profile.totals
    caption = (
        f"{printable(profile.trace.device) or 'unknown device'}: {totals.steps} steps, "
        f"{totals.wall_ns / 1e6:,.3f} ms, {device} {totals.device_ns / 1e6:,.3f} ms"
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _figures(numbers: Numbers, costs: Costs) -> list[str]:
    share = f"{100 * costs.share(numbers):.1f} %" if costs.whole_ns else ""
    times = (numbers.self_device_ns, numbers.idle_ns, numbers.self_cpu_ns)
    return [share, *(f"{ns / 1e6:,.3f}" for ns in times), f"{numbers.calls:,}"]


def _row(cells: list[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(printable(cell))}</td>' for cell in cells)}</tr>"


def _short(path: str) -> str:
    """The file with the folder it lies in."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])
