"""`analysis.db`, which holds the same tables where the profiler was told to export a database and no text.

https://gitcode.com/Ascend/pytorch: torch_npu/profiler/analysis/prof_view/prof_db_parse
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

from deepscope.ranks.ascend_rank import AscendCalls, AscendLink, AscendStep
from deepscope.store.ascend.numbers import NS_PER_US, step_of, time_ns
from deepscope.store.ascend.tables import add_calls, add_link

_STEP = {
    "computing": "computing_ns",
    "communication_not_overlapped": "exposed_ns",
    "overlapped": "overlapped_ns",
    "communication": "communication_ns",
    "free": "free_ns",
    "stage": "stage_ns",
    "bubble": "bubble_ns",
    "preparing": "preparing_ns",
}
_TIMES = {
    "elapse_time": "Elapse Time(ms)",
    "transit_time": "Transit Time(ms)",
    "wait_time": "Wait Time(ms)",
    "synchronization_time": "Synchronization Time(ms)",
    "idle_time": "Idle Time(ms)",
}
_LINK = {"transport_type": "Transport Type", "transit_size": "Transit Size(MB)", "transit_time": "Transit Time(ms)"}


def read_database(path: str, step: int | None) -> tuple[list[AscendStep], list[AscendCalls], list[AscendLink]]:
    """Steps, calls and links of a rank; what the database has no table for is empty.

    Raises:
        ValueError: it is no database, or a damaged one.
    """
    steps: list[AscendStep] = []
    calls: dict[tuple[str, str], AscendCalls] = {}
    links: dict[tuple[str, int, int, str], AscendLink] = {}
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)) as database:
            for row in _rows(database, "StepTraceTime"):
                times = {field: time_ns(row.get(name), NS_PER_US) for name, field in _STEP.items()}
                steps.append(AscendStep(step=step_of(row.get("step")), **times))
            for row in _of_step(_rows(database, "CommAnalyzerTime"), step):
                content = {name: row.get(column) for column, name in _TIMES.items()}
                operator, group = str(row.get("hccl_op_name", "")), str(row.get("group_name", ""))
                if not operator.lower().startswith("total"):
                    add_calls(calls, operator, group, {"Communication Time Info": content})
            for row in _of_step(_rows(database, "CommAnalyzerMatrix"), step):
                link = {name: row.get(column) for column, name in _LINK.items()}
                ends = f"{row.get('src_rank')}-{row.get('dst_rank')}"
                operator, group = str(row.get("hccl_op_name", "")), str(row.get("group_name", ""))
                if not operator.lower().startswith("total"):
                    add_link(links, operator, group, ends, link, in_group=True)
    except sqlite3.Error as error:
        raise ValueError(f"no database that can be read ({error})") from error
    return steps, list(calls.values()), list(links.values())


def _rows(database: sqlite3.Connection, table: str) -> Iterator[dict[str, object]]:
    """The rows of a table by column; none where the database has no such table."""
    there = database.execute("select 1 from sqlite_master where type = 'table' and name = ?", (table,)).fetchone()
    if there is None:
        return
    cursor = database.execute(f'select * from "{table}"')  # noqa: S608 - one of the names above
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _of_step(rows: Iterator[dict[str, object]], step: int | None) -> Iterator[dict[str, object]]:
    return (row for row in rows if step is None or step_of(row.get("step")) == step)
