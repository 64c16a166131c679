"""`cluster_analysis_output`: the tables of all ranks that msprof-analyze puts together, as text or as a database.

The database, `analysis.db`, is written where the profiler was told to export one and no text:
https://gitcode.com/Ascend/pytorch: torch_npu/profiler/analysis/prof_view/prof_db_parse
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote

from deepscope.ranks.ascend_rank import AscendCalls, AscendGroup, AscendLink, AscendRank, AscendStep
from deepscope.store.ascend.folders import CLUSTER_FILES
from deepscope.store.ascend.numbers import NS_PER_US, rank_of, step_of, time_ns
from deepscope.store.ascend.tables import add_calls, add_link, decoded, rows_of, step_row


def read_cluster_output(
    texts: Mapping[str, bytes], step: int | None
) -> tuple[dict[int, AscendRank], list[tuple[str, str]], set[int]]:
    """By rank, what the files tell; which files are damaged, with the reason; and all steps that there are."""
    found: dict[int, AscendRank] = defaultdict(AscendRank)
    damaged = []
    step_times, communication, matrix, groups = CLUSTER_FILES
    readers = {step_times: _steps, communication: _calls, matrix: _links, groups: _groups}
    for name, read in readers.items():
        if name in texts:
            try:
                read(found, texts[name], step)
            except ValueError as error:
                damaged.append((name, str(error)))
    steps = {one.step for rank in found.values() for one in rank.steps}
    for rank in found.values():
        rank.steps = [one for one in rank.steps if step is None or one.step == step]
    return found, damaged, steps


def _steps(found: dict[int, AscendRank], text: bytes, _: int | None) -> None:
    for row in rows_of(text):
        rank = rank_of(row.get("Index"))
        if row.get("Type") == "rank" and rank is not None:
            found[rank].steps.append(step_row(row))


def _calls(found: dict[int, AscendRank], text: bytes, step: int | None) -> None:
    """`{group's ranks: {step: {operator: {rank: times}}}}`."""
    sums: dict[int, dict[tuple[str, str], AscendCalls]] = defaultdict(dict)
    for members, operator, group, content in _operators(text, step):
        for name, info in content.items():
            rank = rank_of(name)
            if rank is not None and isinstance(info, dict):
                add_calls(sums[rank], operator, group, info)
                _know(found[rank], group, members)
    for rank, calls in sums.items():
        found[rank].calls = list(calls.values())


def _links(found: dict[int, AscendRank], text: bytes, step: int | None) -> None:
    """`{group's ranks: {step: {operator: {"source-target": link}}}}`, by ranks of the whole run."""
    sums: dict[tuple[str, int, int, str], AscendLink] = {}
    for _, operator, group, content in _operators(text, step):
        for name, link in content.items():
            add_link(sums, operator, group, name, link, in_group=False)
    for link in sums.values():
        found[link.source].links.append(link)


def _groups(found: dict[int, AscendRank], text: bytes, _: int | None) -> None:
    document = decoded(text)
    listed = document.get("comm_group_parallel_info") if isinstance(document, dict) else None
    for row in listed if isinstance(listed, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("rank_set"), list):
            continue
        ranks = sorted({rank for rank in map(rank_of, row["rank_set"]) if rank is not None})
        name = row.get("pg_name")
        group = AscendGroup(key=str(row.get("group_name", "")), name=name if isinstance(name, str) else "", ranks=ranks)
        for rank in ranks:
            if rank in found:  # a set of ranks may name any
                found[rank].groups = [one for one in found[rank].groups if one.key != group.key] + [group]


def _operators(text: bytes, step: int | None) -> list[tuple[list[int], str, str, dict[str, Any]]]:
    """Ranks of the group, operator, group and content.

    Raises:
        ValueError: the text is no such document.
    """
    document = decoded(text)
    if not isinstance(document, dict):
        raise ValueError("no object of process groups")  # noqa: TRY004 - as any damage in a file
    found = []
    for members, steps in document.items():
        ranks = [rank for rank in map(rank_of, members.strip("()[]").split(",")) if rank is not None]
        for name, operators in steps.items() if isinstance(steps, dict) else ():
            if not isinstance(operators, dict) or (step is not None and step_of(name) != step):
                continue
            for operator, content in operators.items():
                if isinstance(content, dict) and not operator.lower().startswith("total"):
                    word, _, group = operator.rpartition("@")
                    found.append((sorted(ranks), word or operator, group if word else "", content))
    return found


def _know(rank: AscendRank, key: str, members: list[int]) -> None:
    if all(group.key != key for group in rank.groups):
        rank.groups.append(AscendGroup(key=key, ranks=members))


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
