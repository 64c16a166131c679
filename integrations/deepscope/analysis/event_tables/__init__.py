"""Tables with a row an event, a step or a block of memory: too long for a Profile, so they are made when asked for.

They bear the names of the files that torch_npu's profiler writes (`operator_details`, `kernel_details`, …); their
columns are DeepScope's, with its units (docs/export.md).
"""

from __future__ import annotations

from collections.abc import Callable

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.details import (
    communication,
    kernel_details,
    memory_record,
    op_statistic,
    operator_details,
    operator_memory,
)
from deepscope.analysis.event_tables.step_trace_time import step_trace_time
from deepscope.records.columns import ColumnTable, RecordColumn

__all__ = ["EVENT_TABLES", "event_table"]

EVENT_TABLES: dict[str, Callable[[Analysis], list[RecordColumn]]] = {
    "operator_details": operator_details,
    "kernel_details": kernel_details,
    "step_trace_time": step_trace_time,
    "op_statistic": op_statistic,
    "memory_record": memory_record,
    "operator_memory": operator_memory,
    "communication": communication,
}


def event_table(analysis: Analysis, name: str, *, rank: int = -1) -> ColumnTable:
    """One of `EVENT_TABLES`, with the rank in front; -1 where that is not known."""
    columns = EVENT_TABLES[name](analysis)
    rows = len(columns[0].values)
    return ColumnTable(name, (RecordColumn("rank", "integer", [rank] * rows, is_optional=True, absent=-1), *columns))
