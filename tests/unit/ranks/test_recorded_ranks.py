"""Recorded runs of several ranks: parts sum to wholes, and the merged report says the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from deepscope.ranks.call_matching import match
from deepscope.ranks.collective_calls import gather
from deepscope.ranks.rank_summary import CallColumns, RankSummary
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.store import load_profile
from deepscope.store.ranks import read_ranks
from recorded_traces import needs_shared_traces, shared_paths

RUNS = ["param-worker", "torchrec", "astra-sim", "tokenomics"]
MS = 1_000_000

pytestmark = needs_shared_traces


@pytest.fixture(scope="module", params=RUNS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one run alone."""
    folder = tmp_path_factory.mktemp(request.param)
    for path in shared_paths():
        if path.name.startswith(request.param):
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def summaries(folder: Path) -> list[RankSummary]:
    return read_ranks(folder, cache=False).summaries


@pytest.fixture(scope="module")
def report(summaries: list[RankSummary]) -> RanksReport:
    return side_by_side(summaries)


def test_all_time_stands_in_the_rows_and_waiting_and_transfer_are_the_time_of_matched_calls(
    summaries: list[RankSummary], report: RanksReport
) -> None:
    matches = match(gather(summaries))
    calls = matches.calls
    kinds = np.array([row.kind for row in calls.rows])
    messages = (matches.match < 0) & np.isin(kinds[calls.row], ["send_recv"])
    whole = sum(row.time_ns for one in summaries for row in one.collectives)
    assert sum(row.time_ns for row in report.collectives) == whole - int(calls.time_ns[messages].sum())
    matched = int(calls.time_ns[matches.match >= 0].sum())
    shortest = np.full(len(matches), np.iinfo(np.int64).max)
    rows = np.flatnonzero(matches.match >= 0)
    np.minimum.at(shortest, matches.match[rows], calls.time_ns[rows])
    transfer = int((shortest * matches.ranks).sum())
    assert transfer + sum(row.wait_ns or 0 for row in report.collectives) == matched
    assert all(row.matched for row in report.collectives)  # in these runs, something of every row


def test_the_merged_report_says_the_same_of_transfer_and_waiting(folder: Path, report: RanksReport) -> None:
    merged = load_profile(folder, cache=False)
    by_key = {
        (row.kind, row.group, row.group_ranks, row.dtype, row.size_class_bytes): row for row in report.collectives
    }
    told = 0
    for row in merged.collectives:
        if row.transfer_ns is not None:
            told += 1
            one = by_key[row.kind, row.group, row.group_ranks, row.dtype, row.size_class_bytes]
            assert one.transfer_ns is not None
            assert (one.transfer_ns * row.ranks, one.wait_ns) == (row.transfer_ns, row.wait_ns)
    complete = [row for row in report.collectives if row.transfer_ns is not None and row.matched == row.calls]
    assert told == len(complete)


def test_ranks_of_one_machine_have_one_clock(report: RanksReport) -> None:
    """Each of these runs was recorded on one host: the offset that its collectives tell is next to nothing."""
    for clock in report.clocks:
        assert clock.offset_ns is not None
        assert abs(clock.offset_ns) < MS // 2
        assert clock.residual_ns < MS // 10
        assert clock.drift_ns_per_s == 0


def test_no_rank_leaves_a_matched_call_before_another_one_came(summaries: list[RankSummary]) -> None:
    """What holds of the same call and of no other pair of calls, by the machine's own clock."""
    matches = match(gather(summaries))
    calls, rows = matches.calls, np.flatnonzero(matches.match >= 0)
    last, first = np.zeros(len(matches), np.int64), np.full(len(matches), np.iinfo(np.int64).max)
    np.maximum.at(last, matches.match[rows], calls.start_ns[rows])
    np.minimum.at(first, matches.match[rows], calls.end_ns[rows])
    assert len(matches)
    assert (last < first + MS // 2).all()


@pytest.mark.parametrize("cut", [1, 3])
def test_a_window_that_is_shorter_matches_the_same_calls(summaries: list[RankSummary], cut: int) -> None:
    """By the machine's own clock: calls whose ends lie together are the same."""

    first, *others = summaries
    columns = {name: first.calls.column(name)[cut:].tobytes() for name in CallColumns.__struct_fields__}
    shorter = msgspec.structs.replace(first, calls=CallColumns(**columns))
    whole, part = match(gather(summaries)), match(gather([shorter, *others]))
    calls = part.calls
    for number in range(len(part)):
        ends = calls.end_ns[part.match == number]
        assert ends.max() - ends.min() < 2 * MS
    assert len(part) <= len(whole)
    if whole.by_sequence.any():
        assert len(part) == len(whole) - cut
