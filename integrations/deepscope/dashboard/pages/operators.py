"""The operators: by name, by the shapes of their arguments, by the lines that led to them, or by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from deepscope.dashboard.answer import Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.tables import key_of, table_of
from deepscope.records import Detail, Operator, OperatorInDetail, Profile
from deepscope.report.operator_columns import kind_columns, operator_columns
from deepscope.report.top import Question as TopQuestion
from deepscope.report.top import TopRow, ranking

Grouping = Literal["name", "shapes", "stacks", "type"]
_DETAILS: dict[Grouping, tuple[Detail, ...]] = {
    "name": (),
    "shapes": ("shapes",),
    "stacks": ("stacks",),
    "type": ("shapes",),
}
"""What a profile needs for each; `type` takes the sums that count no call twice."""


class OperatorsAsked(Choice, kw_only=True, frozen=True):
    """Which operators, and what makes a row."""

    by: Grouping = "name"


class Operators(PageAnswer):
    """A row for each operator, each of its shapes or stacks, or each kind."""

    by: Grouping
    table: Table


def operators(library: Library, question: OperatorsAsked) -> Operators:
    """The operators, those first in which the device works longest."""
    profile = operator_profile(library, question)
    rows = operator_rows(profile, question.by)
    return Operators(by=question.by, table=operator_table(profile, question.by, rows))


def operator_profile(library: Library, question: OperatorsAsked) -> Profile:
    """The profile that has the rows that are asked for.

    Raises:
        NotYetError, TraceError, OptionError: as `Library.profile`.
    """
    return library.profile(question, details=_DETAILS[question.by])


def operator_rows(profile: Profile, by: Grouping) -> Sequence[Operator | TopRow]:
    """The rows, in the order of the report."""
    if by == "type":
        return ranking(profile, TopQuestion(by="type")).rows
    rows: Sequence[Operator] = profile.operators if by == "name" else profile.operators_in_detail
    return sorted(rows, key=lambda row: -row.self_device_ns)


def operator_key(row: Operator | TopRow) -> str:
    """The word of an address for a row."""
    if isinstance(row, OperatorInDetail):
        return key_of(row.name, row.in_shapes, row.stack)
    return key_of(row.name)


def operator_table(profile: Profile, by: Grouping, rows: Sequence[Operator | TopRow]) -> Table:
    """The rows as a table."""
    columns = kind_columns(profile) if by == "type" else operator_columns(profile, _DETAILS[by])
    return table_of(f"operators_{by}", "Operators", columns, rows, keys=operator_key)
