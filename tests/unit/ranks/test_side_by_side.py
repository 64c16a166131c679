"""Ranks put side by side: their numbers, and which of the files is which rank."""

from __future__ import annotations

import msgspec
import pytest

import built_profiles
from deepscope.ranks.side_by_side import side_by_side
from deepscope.ranks.summary import RankSummary, summary_of


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
    assert "claims to be rank 1, which /runs/a.json is" in failure.message


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
