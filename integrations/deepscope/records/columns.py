"""A Profile as tables of columns: each list of its records is a table, each field of a record a column.

The names follow from the records, so that a new field or table comes out by itself:

- A record within a record becomes columns: `why.short_ns` is `why_short_ns`.
- A list of records within a record becomes a table of its own (`lines_top_operators`); its first column (`lines_row`)
  says in which row of the outer table the list stands, from 0 on. So does a mapping, with a column `key`.
- Other lists and mappings are JSON text.
- A record that a Profile has once (`totals`) is a table of one row; its own numbers and words are the table `profile`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from deepscope.errors import OptionError

if TYPE_CHECKING:
    import numpy.typing as npt

ColumnType = Literal["integer", "number", "text", "flag"]

PROFILE = "profile"
"""The table of what a Profile has outside its tables."""
_TYPES: dict[object, ColumnType] = {int: "integer", float: "number", str: "text", bool: "flag"}


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """One column of a table."""

    name: str
    type: ColumnType
    values: Sequence[Any] | npt.NDArray[Any]
    """One a row, None where there is none; a NumPy array where they were computed as one."""
    words: Sequence[str] | None = None
    """Of a text column with few distinct words: `values` are indexes into them, -1 for none."""
    is_optional: bool = False
    """Whether values may be lacking."""
    absent: int | None = None
    """Of an array the number that stands for a lacking value."""

    @property
    def unit(self) -> str:
        """`ns`, `bytes` or "", as the name says."""
        return unit_of(self.name)

    def plain(self) -> list[Any]:
        """The values as Python's own, None where there is none."""
        found: list[Any] = list(self.values) if isinstance(self.values, Sequence) else self.values.tolist()
        if self.words is not None:
            words = [*self.words, None]  # -1 lands on the last place
            return [words[code] for code in found]
        if self.absent is not None:
            return [None if value == self.absent else value for value in found]
        return found


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table; all its columns are of one length."""

    name: str
    columns: tuple[RecordColumn, ...]

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def column(self, name: str) -> RecordColumn:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)

    def to_arrow(self) -> Any:
        """As a `pyarrow.Table`; raises MissingExtraError where pyarrow is not installed."""
        from deepscope.records.interchange import arrow_table

        return arrow_table(self)

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`; raises MissingExtraError where pandas is not installed."""
        from deepscope.records.interchange import pandas_frame

        return pandas_frame(self)


def unit_of(name: str) -> str:
    """The unit that a column's name says."""
    if name.endswith("_ns"):
        return "ns"
    return "bytes" if name.endswith("_bytes") or name.startswith("bytes_") else ""


class _Field(NamedTuple):
    """A column to be: where its values lie in a row's record."""

    name: str
    path: tuple[str, ...]
    type: ColumnType
    is_optional: bool
    is_json: bool


class _Inner(NamedTuple):
    """A table to be: where its rows lie in a row's record."""

    name: str
    path: tuple[str, ...]
    row: object
    """The type of a row."""
    is_mapping: bool


class _Plan(NamedTuple):
    """What the records of one type become."""

    fields: list[_Field]
    inner: list[_Inner]


@cache
def _plan(record: type[msgspec.Struct], prefix: str = "", path: tuple[str, ...] = (), optional: bool = False) -> _Plan:
    plan = _Plan([], [])
    for name, hint in _hints(record):
        kind, may_lack = _without_none(hint)
        full, here, lacks = f"{prefix}{name}", (*path, name), optional or may_lack
        if _is_record(kind):
            found = _plan(kind, f"{full}_", here, lacks)
            plan.fields.extend(found.fields)
            plan.inner.extend(found.inner)
        elif (inner := _row_type(kind)) is not None:
            plan.inner.append(_Inner(full, here, inner, get_origin(kind) is dict))
        else:
            scalar = _scalar(kind)
            plan.fields.append(_Field(full, here, scalar or "text", lacks, scalar is None))
    return plan


def _hints(record: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    """The fields with their types, a class's own before those of its bases: what names a row stands first."""
    hints = get_type_hints(record)
    names = (name for one in record.__mro__ for name in get_annotations(one))
    ordered = dict.fromkeys([*names, *record.__struct_fields__])
    return [(name, hints[name]) for name in ordered if name in record.__struct_fields__]


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (UnionType, Union) and NoneType in get_args(hint):
        rest = tuple(one for one in get_args(hint) if one is not NoneType)
        return rest[0] if len(rest) == 1 else hint, True
    return hint, False


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _scalar(kind: Any) -> ColumnType | None:
    if get_origin(kind) is Literal:
        return "text" if all(isinstance(one, str) for one in get_args(kind)) else None
    return _TYPES.get(kind)


def _row_type(kind: Any) -> Any:
    """The type of the rows of a list of records, or of a mapping to records or to numbers; None for anything else."""
    arguments = get_args(kind)
    if get_origin(kind) is list and _is_record(arguments[0]):
        return arguments[0]
    if get_origin(kind) is dict and (_is_record(arguments[1]) or arguments[1] in (int, float)):
        return arguments[1]
    return None


class _Table(NamedTuple):
    """A table of a type of records at the top: how its rows are found, and what becomes of them."""

    name: str
    outer: str
    """The table in whose rows its rows lie; "" for one that lies in the top record itself."""
    path: tuple[str, ...]
    row: object
    is_mapping: bool
    is_list: bool


@cache
def _tables(top: type[msgspec.Struct]) -> dict[str, _Table]:
    """All tables of a top record, the outer ones before those in their rows."""
    own = _Table(PROFILE, "", (), top, False, False)
    found = {PROFILE: own}
    for name, hint in _hints(top):
        kind, _ = _without_none(hint)
        row = kind if _is_record(kind) else _row_type(kind)
        if row is not None:
            is_list = not _is_record(kind)
            found[name] = _Table(name, "", (name,), row, get_origin(kind) is dict, is_list)
            found |= _inner_tables(found[name])
    return found


def _inner_tables(table: _Table) -> dict[str, _Table]:
    if not _is_record(table.row):
        return {}
    found = {}
    for inner in _plan(table.row).inner:
        name = f"{table.name}_{inner.name}"
        found[name] = _Table(name, table.name, inner.path, inner.row, inner.is_mapping, True)
        found |= _inner_tables(found[name])
    return found


def table_names(top: type[msgspec.Struct]) -> list[str]:
    """The names of all tables of a type of records."""
    return list(_tables(top))


class DescribedColumn(NamedTuple):
    """A column without its values."""

    name: str
    type: ColumnType
    is_optional: bool
    field: str
    """The field's name; without a record, what the column is."""
    record: Any
    """The class of the record that has the field; None for a column that says where a row lies."""


def described_columns(top: type[msgspec.Struct], name: str) -> list[DescribedColumn]:
    """The columns of a table as `column_table` makes them, for the page about them."""
    tables = _tables(top)
    table = tables[name]
    found = []
    if table.outer and tables[table.outer].is_list:
        found.append(
            DescribedColumn(f"{table.outer}_row", "integer", False, f"row of `{table.outer}`, from 0 on", None)
        )
    if table.is_mapping:
        found.append(DescribedColumn("key", "text", False, "the key in the mapping", None))
    if not _is_record(table.row):
        return [*found, DescribedColumn("value", _TYPES[table.row], False, "the value in the mapping", None)]
    for one in _fields(table, tables):
        holder: Any = table.row
        for step in one.path[:-1]:
            holder = _without_none(dict(_hints(holder))[step])[0]
        found.append(DescribedColumn(one.name, one.type, one.is_optional, one.path[-1], holder))
    return found


def _fields(table: _Table, tables: Mapping[str, _Table]) -> list[_Field]:
    """The fields of a table's rows; of the top record those that are in no table of their own."""
    fields = _plan(table.row).fields
    if table.name != PROFILE:
        return fields
    return [one for one in fields if len(one.path) == 1 and one.path[0] not in tables]


def column_table(top: msgspec.Struct, name: str) -> ColumnTable:
    """One table of a record.

    Raises:
        OptionError: there is none of this name; the message lists those that there are.
    """
    tables = _tables(type(top))
    if name not in tables:
        raise OptionError("table", name, f"no such table; there are: {', '.join(tables)}")
    table = tables[name]
    found = list(_rows(top, table, tables))
    outer, keys, rows = ([one[place] for one in found] for place in range(3))
    columns = []
    if table.outer and tables[table.outer].is_list:
        columns.append(RecordColumn(f"{table.outer}_row", "integer", outer))
    if table.is_mapping:
        columns.append(RecordColumn("key", "text", keys))
    if not _is_record(table.row):
        columns.append(RecordColumn("value", _TYPES[table.row], rows))
    else:
        columns += [
            RecordColumn(one.name, one.type, _values(rows, one), is_optional=one.is_optional)
            for one in _fields(table, tables)
        ]
    return ColumnTable(name, tuple(columns))


def _rows(top: msgspec.Struct, table: _Table, tables: Mapping[str, _Table]) -> Iterator[tuple[int, str | None, Any]]:
    """Each row with the number of the outer row that it lies in, and its key in a mapping."""
    holders: Iterable[Any] = [top]
    if table.outer:
        holders = (row for _, _, row in _rows(top, tables[table.outer], tables))
    for number, holder in enumerate(holders):
        found = _at(holder, table.path)
        if table.is_mapping:
            yield from ((number, str(key), row) for key, row in (found or {}).items())
        elif table.is_list:
            yield from ((number, None, row) for row in found or ())
        elif found is not None:
            yield number, None, found


def _at(record: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if record is None:
            return None
        record = getattr(record, name)
    return record


def _values(rows: Sequence[Any], field: _Field) -> list[Any]:
    if len(field.path) == 1:
        [name] = field.path
        found = [getattr(row, name) for row in rows]
    else:
        found = [_at(row, field.path) for row in rows]
    if not field.is_json:
        return found
    return [None if value is None else json.dumps(msgspec.to_builtins(value)) for value in found]
