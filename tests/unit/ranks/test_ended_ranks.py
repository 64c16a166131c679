"""Ranks that end before the others: who they are, who waited for them, how long, and at which line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from deepscope.analysis.build import build_profile
from deepscope.ranks.ended_ranks import ended_ranks
from deepscope.ranks.rank_summary import RankSummary, summary_of
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import Profile
from deepscope.report.ranks.sentences import answer
from deepscope.store import load_profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

MS = 1_000_000
FILE = "/job/train.py"
OWN, SEND, GAVE_UP = 20 * MS, 2 * MS, 900 * MS


def profile_of(folder: Path, rank: int, steps: range, *, gave_up: int | None = None, world: int = 4) -> Profile:
    """A rank that computes and reduces in each step; in step `gave_up` it waits for one that is gone."""
    builder = TraceBuilder(
        distributedInfo={"backend": "nccl", "rank": rank, "world_size": world}, deepscope={"project_root": "/job"}
    )
    at = 0
    for step in steps:
        reduce = GAVE_UP if step == gave_up else SEND
        builder.line(FILE, 7, "main", at, MS).op("aten::mm", at, MS).kernel("gemm", at + 10, at + MS, OWN - MS)
        builder.line(FILE, 30, "main", at + MS, MS)
        builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + MS + 10, at + OWN, reduce)
        builder.line(FILE, 31, "main", at + 2 * MS, OWN + reduce - 2 * MS)
        builder.runtime("cudaDeviceSynchronize", at + 3 * MS, OWN + reduce - 3 * MS)
        builder.step(step, at, OWN + reduce)
        at += OWN + reduce
    return build_profile(read_trace(builder.write(folder / f"rank{rank}.json")))


def summary(folder: Path, rank: int, steps: range, *, gave_up: int | None = None, world: int = 4) -> RankSummary:
    """What is kept of it."""
    return msgspec.structs.replace(summary_of(profile_of(folder, rank, steps, gave_up=gave_up, world=world)), rank=rank)


@pytest.fixture
def report(tmp_path: Path) -> RanksReport:
    """Rank 2 has steps 3 to 5; the others go on to step 6, wait there, and give up."""
    ranks = [summary(tmp_path, rank, range(3, 7), gave_up=6) for rank in (0, 1, 3)]
    return side_by_side([*ranks, summary(tmp_path, 2, range(3, 6))])


def test_it_is_named_with_its_last_step_and_who_waited_where(report: RanksReport) -> None:
    (one,) = report.ended
    assert (one.rank, one.last_step, one.last_of_others, one.is_cut) == (2, 5, 6, False)
    assert one.waiting == "0-1, 3"
    assert one.longest_ns == GAVE_UP - SEND
    assert one.waited_ns == 3 * (GAVE_UP - SEND)
    assert (one.file, one.line) == (FILE, 30)


def test_the_answer_begins_with_it(report: RanksReport) -> None:
    assert answer(report).startswith(
        "Rank 2 ended after step 5, the others after step 6: ranks 0-1, 3 waited for it, up to 898ms, at train.py:30. "
    )


def test_the_report_of_several_ranks_says_the_same(tmp_path: Path, report: RanksReport) -> None:
    for rank in (0, 1, 3):
        profile_of(tmp_path, rank, range(3, 7), gave_up=6)
    profile_of(tmp_path, 2, range(3, 6))
    (told,) = load_profile(tmp_path, cache=False).trace.warnings
    assert answer(report).startswith(f"{told} ")
    assert load_profile(tmp_path, cache=False, step=4).trace.warnings == []


def test_what_they_waited_is_in_no_mean(report: RanksReport) -> None:
    for row in report.ranks:
        assert row.step_ns == OWN + SEND
        assert row.step_ns == sum(row.parts.values())
        assert row.communication_ns == SEND


def test_windows_that_begin_a_step_apart_end_nobody(tmp_path: Path) -> None:
    found = side_by_side([summary(tmp_path, rank, range(3 + (rank == 1), 7 + (rank == 1))) for rank in range(4)])
    assert found.ended == []


def test_a_rank_that_ends_without_anybody_waiting_is_named_alone(tmp_path: Path) -> None:
    found = side_by_side([summary(tmp_path, 0, range(5), world=2), summary(tmp_path, 1, range(3), world=2)])
    (one,) = found.ended
    assert (one.rank, one.waiting, one.waited_ns, one.file) == (1, "", 0, "")
    assert answer(found).startswith("Rank 1 ended after step 2, the others after step 4. ")


@pytest.fixture
def killed(tmp_path: Path) -> list[RankSummary]:
    """Rank 2 was killed in step 6 and left no trace."""
    return [summary(tmp_path, rank, range(3, 7), gave_up=6) for rank in (0, 1, 3)]


def test_a_rank_without_a_trace_is_named_with_what_all_others_waited_for_it(killed: list[RankSummary]) -> None:
    found = side_by_side(killed)
    assert answer(found).startswith(
        "Rank 2 has no readable trace: ranks 0-1, 3 waited for it in step 6, the last one, up to 898ms, at "
        "train.py:30. "
    )
    assert [(row.step_ns, sum(row.parts.values()), row.communication_ns) for row in found.ranks] == (
        [(OWN + SEND, OWN + SEND, SEND)] * 3
    )


def test_ranks_without_a_trace_are_named_together(killed: list[RankSummary]) -> None:
    assert answer(side_by_side(killed[:2])).startswith(
        "Ranks 2-3 have no readable trace: ranks 0-1 waited for one of them in step 6, the last one, up to 898ms, "
    )


def test_what_one_rank_that_is_here_did_not_wait_was_for_itself(tmp_path: Path, killed: list[RankSummary]) -> None:
    late = summary(tmp_path, 3, range(3, 7))
    assert side_by_side([*killed[:2], late]).missing_wait is None


def test_a_run_with_all_its_ranks_waits_for_none_that_is_missing(tmp_path: Path, killed: list[RankSummary]) -> None:
    whole = [*killed, summary(tmp_path, 2, range(3, 7), gave_up=6)]
    assert side_by_side(whole).missing_wait is None
    assert "no readable trace" not in answer(side_by_side(whole))


def test_a_long_step_before_the_last_is_no_end(tmp_path: Path) -> None:
    found = side_by_side([summary(tmp_path, rank, range(3, 7), gave_up=5) for rank in (0, 1, 3)])
    assert found.missing_wait is None


def test_the_steps_of_each_rank_are_gone_through_a_few_times_however_many_ranks_there_are(tmp_path: Path) -> None:
    seen = []

    class Steps(dict[int, int]):
        def __iter__(self) -> Iterator[int]:
            seen.append(self)
            return super().__iter__()

    one = summary(tmp_path, 0, range(5))
    many = [msgspec.structs.replace(one, rank=rank, step_ns=Steps(one.step_ns)) for rank in range(40)]
    assert ended_ranks(many) == []
    assert len(seen) == 40
