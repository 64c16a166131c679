"""One rank beside the median of the others, by numbers that are worked out by hand."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest

import built_profiles
import built_ranks
from deepscope.errors import OptionError
from deepscope.ranks.rank_detail import RankDetail, rank_detail
from deepscope.ranks.rank_summary import RankSummary, RankWork, summary_of
from deepscope.ranks.ranks_report import Failure
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import CriticalLine, CriticalPath
from deepscope.report.ranks import check_detail, rank_csv, rank_json, rank_text

MS = 10**6


def summary(rank: int, critical_ms: float = 4, mm_ms: float = 10, calls: int = 8, steps: int = 4) -> RankSummary:
    """A rank whose line 7 has this much of the critical path of a step, and whose products take so long."""
    profile = built_profiles.training()
    profile.trace.ranks, profile.trace.path = [rank], f"/runs/{rank}.json"
    one = summary_of(profile)
    totals = msgspec.structs.replace(one.totals, steps=steps)
    line = CriticalLine(file="/p/net.py", line=7, function="f", exact=True,
                        critical_ns=round(steps * (critical_ms + 1) * MS), communication_ns=steps * MS)  # fmt: skip
    work = [
        RankWork("aten::mm", calls * steps, round(mm_ms * MS * steps), 0),
        RankWork("record_param_comms", steps, 90 * MS * steps * rank, 0),
    ]
    return msgspec.structs.replace(
        one, totals=totals, critical=CriticalPath(lines=[line] if critical_ms else []), operators=work, kernels=[]
    )


def detail_of(rank: int, *summaries: RankSummary) -> RankDetail:
    return rank_detail(summaries, side_by_side(summaries), rank)


def test_lines_of_the_critical_path_stand_beside_the_median_without_communication() -> None:
    found = detail_of(1, summary(0, 4), summary(1, 24), summary(2, 6), summary(3, 5))
    (line,) = found.lines
    assert (line.file, line.line, line.value, line.typical) == ("/p/net.py", 7, 24 * MS, 5 * MS)
    assert found.others == 3


def test_a_line_is_the_same_where_the_project_lies_in_another_folder() -> None:
    ranks = [summary(0, 4), summary(1, 24), summary(2, 6)]
    (line,) = ranks[1].critical.lines
    there = CriticalPath(lines=[msgspec.structs.replace(line, file="/scratch/net.py")])
    ranks[1] = msgspec.structs.replace(ranks[1], critical=there, project_root="/scratch")
    ranks[0], ranks[2] = (msgspec.structs.replace(ranks[place], project_root="/p") for place in (0, 2))
    for rank, file, value, typical in ((1, "/scratch/net.py", 24, 5), (0, "/p/net.py", 4, 15)):
        found = detail_of(rank, *ranks).lines
        assert [(one.file, one.value, one.typical) for one in found] == [(file, value * MS, typical * MS)]


def test_a_rank_without_a_line_or_an_operator_counts_as_nothing() -> None:
    found = detail_of(1, summary(0, 0), summary(1, 24), summary(2, 0), summary(3, 5))
    assert [(line.value, line.typical) for line in found.lines] == [(24 * MS, 0)]
    found = detail_of(0, summary(0, 0), summary(1, 24), summary(2, 6))
    assert [(line.value, line.typical) for line in found.lines] == [(0, 15 * MS)]


def test_work_is_a_step_of_each_rank_whatever_number_of_steps_it_recorded() -> None:
    found = detail_of(2, summary(0, mm_ms=10), summary(1, mm_ms=12, steps=2), summary(2, mm_ms=30, calls=24, steps=1))
    (work,) = found.work
    assert (work.value, work.typical, work.calls, work.typical_calls) == (30 * MS, 11 * MS, 24, 8)


def test_numbers_stand_beside_the_median_of_the_others() -> None:
    summaries = [summary(rank) for rank in range(3)]
    report = side_by_side(summaries)
    for row, waited in zip(report.ranks, (5, 70, None), strict=True):
        row.waited_ns = waited
    found = {one.name: one for one in rank_detail(summaries, report, 1).numbers}
    assert (found["waited_ns"].value, found["waited_ns"].typical) == (70, 5)
    assert found["own_ns"].value == report.ranks[1].own_ns
    parts = {name.removeprefix("part: "): one.value for name, one in found.items() if name.startswith("part: ")}
    assert parts == {name: time for name, time in report.ranks[1].parts.items() if time}


def test_what_the_report_knows_of_a_rank_stands_in_its_detail() -> None:
    report = built_ranks.four()
    summaries = [summary(rank) for rank in range(4)]
    found = rank_detail(summaries, report, 2)
    assert found.straggler == report.stragglers[0]
    assert found.clock == report.clocks[2]
    assert [row.kind for row in found.late] == ["all_reduce"]
    assert found.pairs == report.pairs
    assert rank_detail(summaries, report, 3).straggler is None
    assert rank_detail(summaries, report, 3).pairs == []


def test_a_rank_that_is_not_there_is_told_with_those_that_are() -> None:
    report = built_ranks.four()
    with pytest.raises(OptionError, match=r"rank=9: no trace of this rank; there are: 0-3"):
        rank_detail([summary(rank) for rank in range(4)], report, 9)
    with pytest.raises(OptionError, match=r"rank=4: its trace could not be used: .*ends in the middle"):
        rank_detail([summary(rank) for rank in range(4)], report, 4)


def test_the_other_file_of_a_rank_is_told() -> None:
    found = detail_of(1, summary(0), summary(1), msgspec.structs.replace(summary(1), path="/runs/other.json"))
    (failure,) = found.failures
    assert failure == Failure(path="/runs/other.json", rank=1, message=failure.message)


def test_a_rank_alone_has_nothing_beside_it() -> None:
    report = side_by_side([summary(0)])
    found = rank_detail([summary(0)], report, 0)
    assert found.others == 0
    assert {one.typical for one in found.numbers} == {None}
    text = rank_text(found, report, width=80)
    assert "the only rank" in text
    assert not {"others", "more", "others'", "differ"} & set(text.split())


def test_beside_one_other_rank_there_is_no_median() -> None:
    for count, words in ((2, "; the other rank's is "), (4, "; the median of the 3 others is ")):
        ranks = [summary(rank) for rank in range(count)]
        assert words in rank_text(detail_of(1, *ranks), side_by_side(ranks), width=200)


def test_text_json_and_csv_are_of_the_same_numbers() -> None:
    summaries = [summary(0), summary(1, 24, 30, 24), summary(2, 6)]
    report = side_by_side(summaries)
    found = rank_detail(summaries, report, 1)
    told = json.loads(rank_json(found))
    assert told.pop("format") == 1
    assert msgspec.convert(told, RankDetail) == found
    (row,) = csv.DictReader(io.StringIO(rank_csv(found, by="line")))
    assert (row["value"], row["typical"]) == (str(24 * MS), str(5 * MS))
    rows = list(csv.DictReader(io.StringIO(rank_csv(found))))
    assert [row["name"] for row in rows] == [one.name for one in found.numbers]
    text = rank_text(found, report, width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    line = next(line for line in text.splitlines() if "net.py:7" in line)
    assert line.split()[:5] == ["/p/net.py:7", "24ms", "5ms", "+19ms", "+380%"]
    line = next(line for line in text.splitlines() if line.startswith("aten::mm"))
    assert line.split()[1:] == ["30ms", "10ms", "+20ms", "+200%", "24", "8"]


def test_a_table_that_one_rank_does_not_have_is_an_error() -> None:
    with pytest.raises(OptionError, match="one rank has no such table; it has: rank, line"):
        check_detail("clock")
