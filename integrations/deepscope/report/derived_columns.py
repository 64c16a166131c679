"""Numbers of a table that are worked out from its records: JSON and CSV have them beside the fields."""

from __future__ import annotations

from deepscope.records import Costs, Profile
from deepscope.report.line_columns import cost_share
from deepscope.report.operator_columns import operator_columns
from deepscope.report.table_column import ColumnOf

_OF_OPERATORS = ("share", "flops_per_s", "bytes_per_s")


def derived_columns(by: str, profile: Profile) -> list[ColumnOf]:
    """The columns of the table of a word of `--by`; none where it has fields alone."""
    if by in {"line", "function"}:
        per_step = ColumnOf("cost_per_step_ns", "/step", "time", Costs.of(profile).per_step_ns)
        return [cost_share(profile), per_step]
    if by == "operator":
        return [one for one in operator_columns(profile) if one.key in _OF_OPERATORS]
    return []
