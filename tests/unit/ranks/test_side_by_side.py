"""Ranks put side by side: their numbers, and which of the files is which rank."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

import built_profiles
import built_ranks
from deepscope.analysis.build import build_profile
from deepscope.errors import NoTraceError
from deepscope.ranks.rank_summary import RankSummary, summary_of
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.report.ranks import ranks_text
from deepscope.report.ranks.sentences import answer
from deepscope.store.ranks import read_ranks
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


def rank(number: int, path: str = "", world: int = 0) -> RankSummary:
    profile = built_profiles.training()
    profile.trace.ranks = [number] if number >= 0 else []
    profile.trace.world_size, profile.trace.path = world, path or f"/runs/{number}.json"
    return summary_of(profile)


def test_gaps_are_named() -> None:
    report = side_by_side([rank(5), rank(1, world=9)])
    assert (report.world_size, report.missing) == (9, "0, 2-4, 6-8")
    assert side_by_side([rank(0), rank(1)]).missing == ""


def test_a_size_that_no_run_has_costs_nothing() -> None:
    report = side_by_side([rank(0, world=1 << 62)])
    assert report.missing == f"1-{(1 << 62) - 1}"


def test_of_two_files_that_claim_a_rank_the_first_is_taken_and_the_other_told() -> None:
    report = side_by_side([rank(0), rank(1, "/runs/a.json"), rank(1, "/runs/b.json")])
    assert [(row.rank, row.path) for row in report.ranks] == [(0, "/runs/0.json"), (1, "/runs/a.json")]
    (failure,) = report.failures
    assert (failure.path, failure.rank) == ("/runs/b.json", 1)
    assert "names itself rank 1, as /runs/a.json does" in failure.message


def test_a_file_without_a_rank_has_the_first_free_number() -> None:
    report = side_by_side([rank(-1, "/runs/x.json"), rank(0), rank(2), rank(-1, "/runs/y.json")])
    assert {row.rank: row.path for row in report.ranks} == {
        0: "/runs/0.json", 1: "/runs/x.json", 2: "/runs/2.json", 3: "/runs/y.json",
    }  # fmt: skip
    assert report.missing == ""


def test_a_step_is_the_sum_of_its_parts() -> None:
    report = side_by_side([rank(0), rank(1)])
    for row in report.ranks:
        assert row.step_ns == sum(row.parts.values()) or not any(row.parts.values())
        assert row.own_ns == row.step_ns - row.parts.get("communication", 0)


def test_without_a_split_the_wall_time_is_the_step() -> None:
    one = msgspec.structs.replace(rank(0), overview=[])
    (row,) = side_by_side([one]).ranks
    assert row.step_ns == row.own_ns == one.totals.wall_ns // one.totals.steps


def test_no_rank_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rank"):
        side_by_side([])


def test_a_rank_that_usually_comes_last_is_named_though_it_is_hardly_late() -> None:
    rows = [built_ranks.row(rank, 80, last=90 if rank == 2 else 10) for rank in range(4)]
    report = RanksReport(ranks=rows, world_size=4)
    assert "Yet rank 2 usually comes last, to 90 of 120 collectives" in answer(report)
    rows = [built_ranks.row(rank, 80, last=30) for rank in range(4)]
    assert "usually" not in answer(RanksReport(ranks=rows, world_size=4))


def test_several_paths_or_a_pattern_are_one_run(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two", "three")):
        TraceBuilder(distributedInfo={"rank": number, "world_size": 3}).op("aten::mm", 0, 10).write(
            tmp_path / f"{name}.json"
        )
    both = read_ranks([str(tmp_path / "one.json"), str(tmp_path / "three.json")])
    assert [one.rank for one in both.summaries] == [0, 2]
    assert [words.partition(" name")[0] for words in both.skipped] == ["1 more file here"]
    assert sorted(one.rank for one in read_ranks(str(tmp_path / "t*.json")).summaries) == [1, 2]
    assert read_ranks(str(tmp_path / "*.json")).skipped == []
    (words,) = read_ranks(tmp_path / "one.json").skipped
    assert words.startswith("2 more files here name other ranks of this world size (")
    with pytest.raises(NoTraceError, match="no file matches"):
        read_ranks(str(tmp_path / "no*.json"))


def test_a_trace_in_a_folder_that_may_not_be_listed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = TraceBuilder(distributedInfo={"rank": 1, "world_size": 2}).op("aten::mm", 0, 10)
    path = builder.write(tmp_path / "one.json")

    def refuse(folder: str) -> NoReturn:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("deepscope.store.files.os.scandir", refuse)
    found = read_ranks(path, cache=False)
    assert ([one.rank for one in found.summaries], found.skipped) == ([1], [])


def test_of_several_traces_of_a_rank_the_newest_counts_and_the_others_are_told(tmp_path: Path) -> None:
    for name, at, world in (("a_old", 1_000, 2), ("b_new", 9_000, 2)):
        for rank in range(world):
            builder = TraceBuilder(distributedInfo={"rank": rank, "world_size": world}, deepscope={"run_id": name})
            builder.op("aten::mm", 0, 10).write(tmp_path / f"{name}.rank{rank}.{at}000000000000.json")
    found = read_ranks(str(tmp_path / "*.json"))
    report = side_by_side(found.summaries, found.failures)
    assert [Path(row.path).name[:5] for row in report.ranks] == ["b_new", "b_new"]
    assert [(Path(one.path).name[:5], one.rank) for one in report.failures] == [("a_old", 0), ("a_old", 1)]


def test_calls_outside_the_steps_are_told_which_may_be_longer_than_a_step(tmp_path: Path) -> None:
    builder = TraceBuilder(distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2}).step(1, 0, 1000)
    builder.op("gloo:all_reduce", 100, 700).op("gloo:all_reduce", 2000, 5000)
    report = side_by_side([summary_of(build_profile(read_trace(builder.write(tmp_path / "rank0.json"))))])
    assert report.calls_outside_steps == 1
    assert " a step · 1 call of a collective lies outside the steps\n" in ranks_text(report, by="collective", width=120)
