"""`cluster_analysis_output`: the tables of all ranks, as msprof-analyze puts them together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from deepscope.ranks.ascend_rank import AscendCalls, AscendGroup, AscendLink, AscendRank
from deepscope.store.ascend.folders import CLUSTER_FILES
from deepscope.store.ascend.numbers import rank_of, step_of
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
