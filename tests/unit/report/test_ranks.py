"""`deepscope ranks`: snapshots of the overview, every table, and what no rank can do to a terminal."""

from __future__ import annotations

import csv
import io
import json
import re

import msgspec
import pytest
from wcwidth import wcswidth

import built_ranks
from deepscope.ranks.ranks_report import Failure, RankClock, RanksReport
from deepscope.report.ranks import BY, ranks_csv, ranks_json, ranks_text
from deepscope.report.ranks.heat_map import heat_map, level
from deepscope.report.ranks.json_csv import rows_of
from deepscope.report.terminal import Styles
from golden import matches_golden

REPORTS = {"four": built_ranks.four, "thousand": built_ranks.thousand}


@pytest.mark.parametrize("name", REPORTS)
def test_the_overview(name: str) -> None:
    matches_golden(ranks_text(REPORTS[name](), width=80), f"ranks-{name}.txt")


@pytest.mark.parametrize("by", BY)
def test_a_table_whole(by: str) -> None:
    matches_golden(ranks_text(built_ranks.four(), by=by, width=120), f"ranks-by-{by}.txt")


@pytest.mark.parametrize("width", [40, 80, 81, 200])
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for by in (None, *BY):
        text = ranks_text(REPORTS[name](), by=by, width=width)
        if width >= 80:
            assert max(wcswidth(line) for line in text.splitlines()) <= width, by


@pytest.mark.parametrize("name", REPORTS)
def test_colours_leave_the_text_as_it_is(name: str) -> None:
    report = REPORTS[name]()
    colored = ranks_text(report, width=80, color=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", colored)
    assert plain.splitlines() == ranks_text(report, width=80).splitlines()
    assert "\x1b[1;31m" in colored
    assert "\x1b" not in ranks_text(report, width=80)


def test_of_many_ranks_the_five_slowest_have_a_row_and_all_have_a_cell() -> None:
    lines = ranks_text(built_ranks.thousand(), width=80).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Ranks  "))
    rows = lines[start + 2 : lines.index("", start)]
    assert [line.split()[1] for line in rows if "▸" in line] == ["17", "900", "6", "13", "20"]
    assert [line.split()[0] for line in rows[5:8]] == ["median", "min", "max"]
    assert len(rows) == 9
    first = next(at for at, line in enumerate(lines) if line.startswith("Own time"))
    cells = "".join(line[5:] for line in lines[first + 1 : first + 17]).replace(" ", "")
    assert len(cells) == 1024
    assert [rank for rank, cell in enumerate(cells) if cell != "·"] == [5, 17, 900]


def test_no_limit_shows_every_rank() -> None:
    text = ranks_text(built_ranks.thousand(), limit=0, width=80)
    assert "shown (" not in text
    assert sum("ms " in line for line in text.splitlines()) > 1024


def test_a_limit_shortens_every_table() -> None:
    text = ranks_text(built_ranks.thousand(), limit=2, width=80)
    assert "2 of 1,024 rows shown (--by rank" in text
    assert "2 of 128 rows shown (--by group)" in text
    assert "2 of 1,016 rows shown (--by pair)" in text


def test_a_shade_says_how_far_a_rank_is_above_the_median() -> None:
    found = [level(own, 100) for own in (150, 149, 125, 124, 110, 109, 105, 104, 100, 95, 94, 0)]
    assert "".join(found) == "█▓▓▒▒░░···--"
    assert level(5, 0) == "·"


def test_json_is_the_report_itself() -> None:
    report = built_ranks.four()
    content = json.loads(ranks_json(report))
    assert content.pop("format") == 1
    counts = content.pop("counts")
    assert content == msgspec.to_builtins(report)
    assert counts == {key: len(content[key]) for key in counts}
    assert counts == json.loads(ranks_json(report, limit=1))["counts"]
    assert msgspec.convert(content, RanksReport) == report
    assert ranks_json(report).isascii()
    assert [len(json.loads(ranks_json(report, limit=1))[key]) for key in ("ranks", "clocks", "varying")] == [1, 1, 1]


@pytest.mark.parametrize("by", BY)
def test_csv_has_the_fields_of_the_json(by: str) -> None:
    report = built_ranks.four()
    rows = list(csv.DictReader(io.StringIO(ranks_csv(report, by=by))))
    assert len(rows) == len(rows_of(report, by))
    for row, record in zip(rows, rows_of(report, by), strict=True):
        for name, value in msgspec.to_builtins(record).items():
            if name == "parts":
                assert {part: int(row[f"part_{part.replace(' ', '_')}_ns"]) for part in value} == value
            elif isinstance(value, (list, dict)):
                assert json.loads(row[name]) == value
            else:
                wanted = "" if value is None else str(int(value) if isinstance(value, bool) else value)
                assert row[name] == wanted
    assert len(list(csv.reader(io.StringIO(ranks_csv(report, by=by, limit=1))))) == 2


def test_names_of_strangers_do_nothing() -> None:
    evil = "\x1b[2Jevil\u202e\n=cmd"
    report = built_ranks.four()
    report.path = report.project_root = evil
    report.failures.append(Failure(path=evil, message=evil))
    for row in report.ranks:
        row.host = row.device = row.path = evil + str(row.rank)
    for table in (report.groups, report.collectives, report.varying, report.stragglers):
        for record in table:
            for name, value in msgspec.structs.asdict(record).items():
                if isinstance(value, str) and name not in {"cause", "role"}:
                    setattr(record, name, evil)
    report.stragglers[0].figures[0].label = evil
    for by in (None, *BY):
        for text in (ranks_text(report, by=by, width=80), ranks_csv(report, by=by or "rank")):
            assert all(line.isprintable() for line in text.split("\n")), by
    assert ranks_json(report).isascii()
    rows = csv.reader(io.StringIO(ranks_csv(report, by="straggler")))
    assert not [cell for row in rows for cell in row if cell.startswith("=")]


def test_a_rank_alone_is_told_what_it_cannot_tell() -> None:
    report = RanksReport(path="/runs/one", world_size=8, missing="0-2, 4-7", ranks=[built_ranks.row(3)],
                         part_names=built_ranks.PARTS)  # fmt: skip
    text = ranks_text(report, width=80)
    assert "Rank 3 of 8 is the only one here" in text
    assert "no trace of 0-2, 4-7" in text
    assert "Own time" not in text
    assert "median" not in text


def test_times_without_steps_are_of_the_whole() -> None:
    report = built_ranks.four()
    for row in report.ranks:
        row.steps = 0
    text = ranks_text(report, width=80)
    assert "a step" not in text.replace(report.stragglers[0].message, "").partition("Late ranks")[0]
    assert "no steps marked" in text


def test_a_run_of_any_claimed_size_is_shown_at_once() -> None:
    report = built_ranks.four()
    report.world_size, report.missing = 1 << 62, f"4-{(1 << 62) - 1}"
    assert "node1 2-3" in ranks_text(report, width=80)
    for row in report.ranks:
        row.host = ""
    assert "0-3  ·  ·  ▓▓ ·" in ranks_text(report, width=80)


def test_cells_of_ranks_that_lie_apart_are_labelled_with_these() -> None:
    report = RanksReport(world_size=64, ranks=[built_ranks.row(rank, host="") for rank in (0, 16, 32, 48)])
    (cells, _) = heat_map(report, 80, Styles(False))
    assert cells.split("  ")[0] == "0, 16, 32, 48"


def test_ranks_stand_by_their_own_time_beyond_the_five_slowest() -> None:
    report = built_ranks.four()
    report.ranks = [built_ranks.row(rank, own, 30) for rank, own in enumerate((20, 90, 40, 80, 30, 70, 60, 50))]
    report.slowest = [1, 3, 5, 6, 7]
    lines = ranks_text(report, by="rank", width=80).splitlines()
    rows = [line.replace("▸", " ").split()[0] for line in lines if re.match(r"[ ▸]+\d", line)]
    assert rows == ["1", "3", "5", "6", "7", "2", "4", "0"]


def test_clocks_that_nothing_leads_to_are_a_line_and_no_table() -> None:
    report = built_ranks.four()
    report.clocks = [RankClock(rank=rank) for rank in range(4)]
    text = ranks_text(report, width=80)
    assert "Clocks  no collective leads from rank to rank: ranks 0-3 not aligned\n\n" in text
    assert "unknown" in ranks_text(report, by="clock", width=80)


def test_no_rank_stands_out_where_none_is_late() -> None:
    report = built_ranks.four()
    report.stragglers = []
    text = ranks_text(report, width=200)
    assert (
        "No rank is known to hold the others up. Without communication the ranks' steps differ: 118ms on rank 2" in text
    )
    assert "Late ranks" not in text
    report.ranks[2] = built_ranks.row(2, 81, 39)
    text = ranks_text(report, width=200)
    assert "No rank stands out: without communication the ranks' steps differ by 3.7% (79ms to 82ms)." in text
    assert "Only communication runs in 32.9% of their time." in text


def test_the_answer_claims_no_more_than_is_known() -> None:
    report = built_ranks.four()
    (worst, *_) = report.stragglers
    place = f"{worst.file.rpartition('/')[2]}:{worst.line}"
    worst.line_ns = worst.excess_ns // 2
    text = " ".join(ranks_text(report, width=80).split())
    assert "most of it in" in text
    worst.line_ns = worst.excess_ns // 4
    text = " ".join(ranks_text(report, width=80).split())
    assert "most of it" not in text
    assert f"part of it in {place}" in text
    worst.late_calls, worst.calls = 0, 12
    text = " ".join(ranks_text(report, width=80).split())
    assert "yet it came last to none of 12 collectives." in text


def test_an_empty_table_says_so() -> None:
    report = RanksReport(ranks=[built_ranks.row(0), built_ranks.row(1)], world_size=2)
    for by in set(BY) - {"rank"}:
        last = ranks_text(report, by=by, width=80).splitlines()[-1]
        assert last.startswith(("no ", "the clocks of these ranks")), by
