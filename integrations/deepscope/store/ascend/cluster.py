"""A run on Ascend devices, from its folder: what each rank's tables tell, else what msprof-analyze made of them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from deepscope.errors import DeepScopeError
from deepscope.ranks.rank_summary import AscendCalls, AscendGroup, AscendLink, AscendRank, AscendStep
from deepscope.ranks.ranks_report import Failure
from deepscope.store.ascend.folders import CLUSTER_FILES, METADATA, RANK_FILES, RankFolder, rank_folder_of, rank_folders
from deepscope.store.ascend.tables import (
    NS_PER_US,
    add_calls,
    add_link,
    decoded,
    groups_of,
    is_sum,
    operators_in,
    rank_of,
    read_calls,
    read_links,
    read_steps,
    rows_of,
    step_of,
    step_row,
    time_ns,
)
from deepscope.store.files import TraceFile, list_files, open_file
from deepscope.trace.kineto.remote import is_url, reason_of


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
        for name, table in steps.items() if isinstance(steps, dict) else ():
            if step is None or step_of(name) == step:
                found += [(sorted(ranks), *operator) for operator in operators_in(table)]
    return found


def _know(rank: AscendRank, key: str, members: list[int]) -> None:
    if all(group.key != key for group in rank.groups):
        rank.groups.append(AscendGroup(key=key, ranks=members))


_STEP = {
    **{
        name: f"{name}_ns"
        for name in ("computing", "overlapped", "communication", "free", "stage", "bubble", "preparing")
    },
    "communication_not_overlapped": "exposed_ns",
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
            for operator, group, row in _operator_rows(database, "CommAnalyzerTime", step):
                content = {name: row.get(column) for column, name in _TIMES.items()}
                add_calls(calls, operator, group, {"Communication Time Info": content})
            for operator, group, row in _operator_rows(database, "CommAnalyzerMatrix", step):
                link = {name: row.get(column) for column, name in _LINK.items()}
                ends = f"{row.get('src_rank')}-{row.get('dst_rank')}"
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


def _operator_rows(
    database: sqlite3.Connection, table: str, step: int | None
) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Operator, process group and row of each row of a table, of all steps or of one; sums left out."""
    for row in _rows(database, table):
        operator = str(row.get("hccl_op_name", ""))
        if (step is None or step_of(row.get("step")) == step) and not is_sum(operator):
            yield operator, str(row.get("group_name", "")), row


_ENDINGS = (".json", ".csv", ".db")
_MOST_BYTES = 1 << 29
"""Of one table; larger ones are told as failures."""
_T = TypeVar("_T")


@dataclass(slots=True)
class Cluster:
    """What the tables of a run tell."""

    ranks: dict[int, AscendRank] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    world_size: int = 0
    """As the metadata tell; 0 where they do not."""
    steps: set[int] = field(default_factory=set)
    """All that there are, whether asked for or not."""

    def add(self, other: Cluster) -> None:
        """Takes the ranks of another folder in; those that are here already stay, and the others are told."""
        for rank, summary in other.ranks.items():
            own = self.ranks.setdefault(rank, summary)
            if own.folder != summary.folder:
                why = f"{summary.folder}: names itself rank {rank}, as {own.folder} does; it is left out"
                self.failures.append(Failure(path=summary.folder, rank=rank, message=why))
        self.failures += [one for one in other.failures if one not in self.failures]
        self.world_size = max(self.world_size, other.world_size)
        self.steps |= other.steps


def find_cluster(path: str, step: int | None = None) -> Cluster:
    """What is found below a folder; nothing where no rank of an Ascend run lies there.

    Ranks without a number have the first that are free. What is damaged is told and left out.

    Args:
        path: a folder, or an fsspec URL of one.
        step: only this step.
    """
    found = Cluster()
    try:
        files = list_files(rank_folder_of(path), _ENDINGS)
    except DeepScopeError:
        return found
    folders = rank_folders(files)
    taken = {one.rank for one in folders}
    free = (number for number in range(len(taken) + len(folders) + 1) if number not in taken)
    for folder in folders:
        rank = next(free) if folder.rank is None else folder.rank
        found.ranks[rank] = _read_rank(found, folder, rank, step)
    newest = {file.name: file for file in sorted(files, key=lambda one: one.mtime_ns) if file.name in CLUSTER_FILES}
    if newest:
        _add_output(found, newest, step)
    return found


def _add_output(found: Cluster, files: dict[str, TraceFile], step: int | None) -> None:
    """What msprof-analyze tells of ranks that have no such table of their own."""
    texts = {name: _try(found, file, None, bytes, b"") for name, file in files.items()}
    summaries, damaged, steps = read_cluster_output({name: text for name, text in texts.items() if text}, step)
    found.failures += [Failure(path=files[name].path, message=f"{files[name].path}: {why}") for name, why in damaged]
    found.steps |= steps
    own_links = any(one.links for one in found.ranks.values())
    for rank, other in summaries.items():
        mine = found.ranks.setdefault(rank, AscendRank(folder=other.folder or next(iter(files.values())).folder))
        mine.steps = mine.steps or other.steps
        mine.calls = mine.calls or other.calls
        mine.links = mine.links if own_links else other.links
        mine.groups = mine.groups or other.groups


def _read_rank(cluster: Cluster, folder: RankFolder, rank: int, step: int | None) -> AscendRank:
    """All that the tables of one rank tell."""

    def table(name: str, read: Callable[[bytes], _T], nothing: _T) -> _T:
        file = folder.files.get(name)
        return nothing if file is None else _try(cluster, file, rank, read, nothing)

    step_times, communication, matrix, database = RANK_FILES
    steps: list[AscendStep] = table(step_times, read_steps, [])
    cluster.steps |= {one.step for one in steps}
    found = AscendRank(
        folder=folder.path,
        steps=[one for one in steps if step is None or one.step == step],
        calls=table(communication, lambda text: read_calls(text, step), []),
        links=table(matrix, lambda text: read_links(text, step), []),
    )
    metadata = table(METADATA, decoded, None)
    found.groups = groups_of(metadata)
    arguments = metadata.get("distributed_args") if isinstance(metadata, dict) else None
    size = rank_of(arguments.get("world_size")) if isinstance(arguments, dict) else None
    last = max((member for group in found.groups for member in group.ranks), default=-1)
    cluster.world_size = max(cluster.world_size, size or 0, last + 1)
    if database in folder.files and not (found.steps and found.calls and found.links):
        try:
            _add_database(cluster, found, folder.files[database].path, step)
        except ValueError as error:
            path = folder.files[database].path
            cluster.failures.append(Failure(path=path, rank=rank, message=f"{path}: {error}"))
    return found


def _add_database(cluster: Cluster, found: AscendRank, path: str, step: int | None) -> None:
    """What the text files do not tell. Raises `ValueError` where the database cannot be read."""
    if is_url(path):
        raise ValueError("a database is read on this machine alone; copy it, or export text")
    steps, calls, links = read_database(path, step)
    cluster.steps |= {one.step for one in steps}
    found.steps = found.steps or [one for one in steps if step is None or one.step == step]
    found.calls, found.links = found.calls or calls, found.links or links


def _try(cluster: Cluster, file: TraceFile, rank: int | None, read: Callable[[bytes], _T], nothing: _T) -> _T:
    """What is read of a file; a failure is told."""
    try:
        with open_file(file) as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError("larger than 512 MiB")  # noqa: TRY301
        return read(text)
    except (OSError, ValueError, DeepScopeError) as error:
        cluster.failures.append(Failure(path=file.path, rank=rank, message=f"{file.path}: {reason_of(error)}"))
        return nothing
