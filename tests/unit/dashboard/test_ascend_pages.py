"""The distributed page of a run on Ascend devices: its tables as `deepscope ranks` has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascend_cluster import rank_folder, write_cluster
from asking import Asking
from deepscope.ranks.side_by_side import side_by_side
from deepscope.report.ranks import ranks_json
from deepscope.store.ranks import read_ranks

DOMAIN = {
    "elapsed_ns": "elapsed_ns", "transit_ns": "transit_ns", "wait_ns": "wait_ns", "idle_ns": "idle_ns",
    "synchronization_ns": "synchronization_ns", "calls": "calls", "domain": "domain", "ranks": "ranks", "role": "role",
}  # fmt: skip
LINK = {"bytes": "bytes", "time_ns": "time_ns", "bytes_per_s": "bytes_per_s", "transport": "transport",
        "typical_bytes_per_s": "typical_bytes_per_s"}  # fmt: skip


def whole(root: Path) -> Path:
    return write_cluster(root / "run")


def without_a_trace(root: Path) -> Path:
    run = write_cluster(root / "run")
    (rank_folder(run, 2) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    return run


def of_one_rank(root: Path) -> Path:
    return rank_folder(write_cluster(root / "run"), 3)


def one_trace_of_four(root: Path) -> Path:
    run = write_cluster(root / "run")
    for rank in range(1, 4):
        (rank_folder(run, rank) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    return run


def told(path: Path, step: int | None = None) -> dict[str, Any]:
    """What `deepscope ranks --format json` writes."""
    read = read_ranks(path, step=step)
    found: dict[str, Any] = json.loads(ranks_json(side_by_side(read.summaries, read.failures, str(path))))
    return found


def column(table: dict[str, Any], key: str) -> list[Any]:
    keys = [one["key"] for one in table["columns"]]
    return [row[keys.index(key)] if key in keys else None for row in table["rows"]]


def check(page: dict[str, Any], told: dict[str, Any]) -> None:
    assert page["ranks"] == [row["rank"] for row in told["ranks"]]
    assert page["ownNs"] == [row["own_ns"] for row in told["ranks"]]
    assert (page["worldSize"], page["missing"]) == (told["world_size"], told["missing"])
    for name, fields in (("domains", DOMAIN), ("links", LINK)):
        assert page[name]["rows"]
        for key, field in fields.items():
            assert [value or 0 for value in column(page[name], key)] == [row[field] or 0 for row in told[name]], key
    ends = [f"rank {row['source']} → rank {row['target']}" for row in told["links"]]
    assert column(page["links"], "link") == ends
    awaited = [f"rank {row['awaited_rank']}" if row["awaited_rank"] is not None else "" for row in told["domains"]]
    assert [value or "" for value in column(page["domains"], "awaited")] == awaited


@pytest.mark.parametrize("make", [whole, without_a_trace, of_one_rank, one_trace_of_four])
@pytest.mark.parametrize("step", [None, 7])
def test_the_page_has_the_tables_of_the_command(make: Callable[[Path], Path], step: int | None, tmp_path: Path) -> None:
    path = make(tmp_path)
    asking = Asking(path)
    try:
        words = {} if step is None else {"step": step}
        check(asking("distributed", **words), told(path, step))
        assert asking("header")["hasRanks"] is True
    finally:
        asking.close()


def test_a_slow_link_is_marked(tmp_path: Path) -> None:
    asking = Asking(whole(tmp_path))
    try:
        links = asking("distributed")["links"]
    finally:
        asking.close()
    marked = {row[0] for row, mark in zip(links["rows"], column(links, "slow"), strict=True) if mark}
    assert marked == {"rank 1 → rank 3", "rank 3 → rank 1"}


def test_runs_beside_each_other_have_tables_of_their_own(tmp_path: Path) -> None:
    write_cluster(tmp_path / "small", ranks=(0, 1))
    write_cluster(tmp_path / "large")
    asking = Asking(tmp_path)
    try:
        runs = asking("runs")["runs"]
        assert len(runs) == 2
        for run in runs:
            check(
                asking("distributed", run=run["id"]), told(tmp_path / ("large" if len(run["ranks"]) > 2 else "small"))
            )
    finally:
        asking.close()


def test_the_command_takes_no_tables_of_another_run(tmp_path: Path) -> None:
    write_cluster(tmp_path / "large")
    write_cluster(tmp_path / "small", ranks=(0, 1))
    found = told(tmp_path)
    alone = told(tmp_path / ("small" if len(found["ranks"]) == 2 else "large"))
    assert (found["domains"], found["links"]) == (alone["domains"], alone["links"])
    assert [row["rank"] for row in found["ranks"]] == [row["rank"] for row in alone["ranks"]]


def test_a_part_of_a_step_has_no_tables(tmp_path: Path) -> None:
    path = whole(tmp_path)
    asking = Asking(path)
    try:
        page = asking("distributed", phase="forward")
        assert (page["domains"]["rows"], page["links"]["rows"]) == ([], [])
    finally:
        asking.close()


def test_tables_alone_are_told_with_the_command_that_shows_them(tmp_path: Path) -> None:
    asking = Asking(write_cluster(tmp_path / "run", traces=False))
    try:
        status, answer = asking.status("distributed")
    finally:
        asking.close()
    assert status == 404
    assert "tables of Ascend's profiler: `deepscope ranks` shows them" in answer["error"]
