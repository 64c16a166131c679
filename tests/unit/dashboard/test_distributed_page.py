"""The distributed page: the ranks as `deepscope ranks` has them, and one of them in detail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import built_profiles
import built_ranks
from asking import Asking
from deepscope.dashboard.library import RanksOfRun
from deepscope.dashboard.page_answer import Choice, Table, encoded
from deepscope.dashboard.pages.distributed import Distributed, RankChoice, RankPage, distributed, rank
from deepscope.ranks.rank_detail import rank_detail
from deepscope.ranks.rank_summary import RankSummary, summary_of
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.report.ranks import rank_json, ranks_json
from deepscope.store.load import load_profile
from deepscope.store.ranks import read_ranks
from recorded_traces import needs_shared_traces, own_paths, shared_paths
from trace_builder import TraceBuilder

RUNS = {"grafted-ranks": 2, "param-worker": 8, "torchrec": 4, "astra-sim": 2}
MS = 1_000_000


def runs() -> list[object]:
    own, *shared = RUNS
    return [own, *(pytest.param(name, marks=needs_shared_traces) for name in shared)]


@pytest.fixture(scope="module", params=runs())
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's ranks alone in a folder."""
    found = tmp_path_factory.mktemp("run")
    for path in (*own_paths(), *shared_paths()):
        if path.name.startswith(request.param):
            shutil.copy(path, found)
    return found


@pytest.fixture(scope="module")
def ask(folder: Path) -> Iterator[Asking]:
    asking = Asking(folder)
    yield asking
    asking.close()


@pytest.fixture(scope="module")
def command(folder: Path) -> tuple[dict[str, Any], RanksOfRun]:
    """What `deepscope ranks --format json` writes."""
    read = read_ranks(folder)
    report = side_by_side(read.summaries, read.failures, str(folder))
    return json.loads(ranks_json(report)), RanksOfRun(read.summaries, report)


def column(table: dict[str, Any], key: str) -> list[Any]:
    """Of each row; None where the column says nothing."""
    keys = [one["key"] for one in table["columns"]]
    return [row[keys.index(key)] if key in keys else None for row in table["rows"]]


def test_the_page_has_the_numbers_of_the_command(ask: Asking, command: tuple[dict[str, Any], RanksOfRun]) -> None:
    page, told = ask("distributed"), command[0]
    assert page["ranks"] == [row["rank"] for row in told["ranks"]]
    assert page["ownNs"] == [row["own_ns"] for row in told["ranks"]]
    assert page["parts"] == [[row["parts"][name] for name in told["part_names"]] for row in told["ranks"]]
    assert (page["slowest"], page["missing"], page["worldSize"]) == (
        told["slowest"], told["missing"], told["world_size"],
    )  # fmt: skip
    table = page["table"]
    assert table["keys"] == [str(row["rank"]) for row in told["ranks"]]
    for key in ("step_ns", "own_ns", "compute_ns", "communication_ns", "exposed_ns", "idle_ns", "data_ns", "sync_ns",
                "waited_ns", "last", "peak_bytes", "steps"):  # fmt: skip
        assert [value or 0 for value in column(table, key)] == [row[key] or 0 for row in told["ranks"]], key
    for name, fields in {
        "collectives": ("time_ns", "transfer_ns", "wait_ns", "spread_ns", "bus_bytes_per_s"),
        "groups": ("time_ns", "calls", "wait_ns"),
        "clocks": ("offset_ns", "calls"),
        "pairs": ("bytes", "time_ns"),
        "varying": ("max_ns", "min_ns", "median_ns"),
        "lines": ("max_ns", "min_ns", "median_ns"),
    }.items():
        assert len(page[name]["rows"]) + page[name]["leftOut"] == len(told[name])
        for key in fields:
            wanted = [row[key] or 0 for row in told[name][: len(page[name]["rows"])]]
            assert [value or 0 for value in column(page[name], key)] == wanted, (name, key)
    late = [(one["rank"], one["excessNs"], one["file"], one["line"]) for one in page["stragglers"]]
    assert (
        late == [(one["rank"], one["excess_ns"], one["file"], one["line"]) for one in told["stragglers"]][: len(late)]
    )


def test_the_longest_step_is_that_of_the_slowest_ranks_profile(ask: Asking, folder: Path) -> None:
    page = ask("distributed")
    figures = {one["label"]: one["value"] for one in page["figures"]}
    profiles = [load_profile(folder, rank=number) for number in page["ranks"]]
    lengths = [sum(step.duration_ns for step in one.steps) // len(one.steps) for one in profiles]
    assert column(page["table"], "step_ns") == lengths
    assert figures["step, slowest rank"] == max(lengths)


def test_every_rank_has_the_numbers_of_its_own_profile(ask: Asking, folder: Path) -> None:
    page = ask("distributed")
    assert len(page["ranks"]) == len(list(folder.iterdir()))
    for place, number in enumerate(page["ranks"]):
        profile = load_profile(folder, rank=number)
        steps = max(profile.totals.steps, 1)
        assert (column(page["table"], "idle_ns")[place] or 0) == profile.totals.idle_ns // steps
        lines = [*profile.lines, profile.no_line]
        collective_ns = sum(line.collective_ns for line in lines)
        communication_ns = sum(step.communication_ns for step in profile.steps) // steps
        assert column(page["table"], "communication_ns")[place] == communication_ns <= max(collective_ns // steps, 1)
        assert column(page["table"], "exposed_ns")[place] <= communication_ns
        assert column(page["table"], "compute_ns")[place] == sum(step.computing_ns for step in profile.steps) // steps
        split = [one for one in profile.overview if one.section == "step"]
        assert dict(zip(page["partNames"], page["parts"][place], strict=True)) == {
            one.name: one.time_ns // one.steps for one in split
        }
        assert abs(sum(page["parts"][place]) - split[0].whole_ns // split[0].steps) <= len(split)


def test_a_rank_in_detail_is_that_of_the_command(ask: Asking, command: tuple[dict[str, Any], RanksOfRun]) -> None:
    of_run = command[1]
    for number in [row.rank for row in of_run.report.ranks][:2]:
        page = ask("rank", of=number)
        told = json.loads(rank_json(rank_detail(of_run.summaries, of_run.report, number)))
        beside = [(one["value"], one["typical"]) for one in [*page["numbers"], *page["parts"]]]
        assert beside == [(one["value"], one["typical"]) for one in told["numbers"]]
        for name in ("lines", "collectives", "work"):
            assert len(page[name]["rows"]) == len(told[name])
            assert [value or 0 for value in column(page[name], "value_ns")] == [row["value"] for row in told[name]]
            assert [value or 0 for value in column(page[name], "typical_ns")] == [row["typical"] for row in told[name]]


def test_a_rank_that_is_not_there_is_told(ask: Asking) -> None:
    status, answer = ask.status("rank", of=77)
    assert status == 400
    assert "no trace of this rank; there are: 0-" in answer["error"]


def test_a_chosen_rank_hides_no_other(ask: Asking) -> None:
    assert ask("distributed", rank=0) == ask("distributed")


class _Ranks:
    """A library of these ranks."""

    def __init__(self, report: RanksReport, summaries: list[RankSummary]) -> None:
        self._found = RanksOfRun(summaries, report)

    def ranks(self, _: Any) -> RanksOfRun:
        return self._found


def page_of(report: RanksReport) -> Distributed:
    return distributed(_Ranks(report, []), Choice())  # type: ignore[arg-type]


def rank_page_of(report: RanksReport, number: int) -> RankPage:
    summaries = []
    for row in report.ranks:
        profile = built_profiles.training()
        profile.trace.ranks = [row.rank]
        summaries.append(summary_of(profile))
    return rank(_Ranks(report, summaries), RankChoice(of=number))  # type: ignore[arg-type]


def test_a_late_rank_is_told_with_its_line_and_figures_in_the_words_of_the_pages() -> None:
    page = page_of(built_ranks.four())
    (late,) = page.stragglers
    assert (late.rank, late.file, late.line, late.place) == (2, "/home/me/project/train.py", 14, "train.py:14")
    assert late.message.endswith("120 collectives, 38.0 ms a step after the median of the others.")
    assert [(one.label, one.value, one.typical) for one in late.figures] == [
        ("calls of aten::mm", "640", "480"), ("time of a call", "52 µs", "51 µs"),
    ]  # fmt: skip
    assert late.cause == "more work"
    assert "it is 38 ms a step later than the median of the others, most of it in train.py:14" in page.sentence
    assert rank_page_of(built_ranks.four(), 2).late == late
    assert rank_page_of(built_ranks.four(), 3).late is None


def test_tables_of_a_rank_beside_those_of_all_have_names_of_their_own_and_columns_have_titles() -> None:
    report = built_ranks.four()
    answers = [page_of(report), rank_page_of(report, 2)]
    tables = [one for page in answers for one in msgspec.structs.asdict(page).values() if isinstance(one, Table)]
    names = [one.id for one in tables]
    assert len(names) == len(set(names))  # rows are told apart by them, for whoever hears which one is active
    assert [column.key for one in tables for column in one.columns if not column.title] == []


def test_messages_between_few_ranks_are_a_matrix() -> None:
    matrix = page_of(built_ranks.four()).matrix
    assert matrix is not None
    assert (matrix.ranks, matrix.times_ns) == ([1, 2], [[0, 6 * MS], [2 * MS, 0]])
    assert page_of(built_ranks.thousand()).matrix is None


def test_what_is_not_there_is_not_made_up() -> None:
    report = built_ranks.four()
    report.groups, report.collectives, report.pairs, report.clocks = [], [], [], []
    for row in report.ranks:
        row.waited_ns = row.last = None
    page = page_of(report)
    assert page.knows_waits is False
    assert page.matrix is None
    assert {"waited_ns", "last"}.isdisjoint(one.key for one in page.table.columns)


def test_times_of_traces_without_steps_are_not_called_those_of_a_step() -> None:
    report = built_ranks.four()
    assert page_of(report).has_steps is rank_page_of(report, 2).has_steps is True
    for row in report.ranks:
        row.steps = 0
    page = page_of(report)
    assert page.has_steps is rank_page_of(report, 2).has_steps is False
    assert all("step" not in f"{one.label} {one.help}" for one in page.figures)


def test_calls_of_collectives_outside_the_steps_are_told(tmp_path: Path) -> None:
    builder = TraceBuilder(distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2}).step(1, 0, 1000)
    builder.op("gloo:all_reduce", 100, 700).op("gloo:all_reduce", 2000, 5000)
    asking = Asking(builder.write(tmp_path / "rank0.json"))
    try:
        figures = {one["label"]: one["value"] for one in asking("distributed")["figures"]}
    finally:
        asking.library.close()
    assert figures["calls outside the steps"] == 1


def test_failures_and_missing_ranks_are_told() -> None:
    page = page_of(built_ranks.four())
    assert (page.missing, page.world_size) == ("4-5", 6)
    assert [(one.rank, "ends in the middle" in one.message) for one in page.failures] == [(4, True)]


def test_a_thousand_ranks_are_a_small_answer() -> None:
    page = page_of(built_ranks.thousand())
    assert len(page.table.rows) == len(page.ranks) == 1024
    assert len(encoded(page)) < 450_000
    assert len(page.hosts) == 128


def test_names_of_strangers_are_shown_as_they_are_and_do_nothing() -> None:
    evil = "\x1b[2J\u202e<script>"
    report = built_ranks.four()
    for row in report.ranks:
        row.host = row.device = f"{evil}{row.rank}"
    late = report.stragglers[0]
    late.message = late.text = late.function = late.part = late.figures[0].label = evil
    report.failures[0].message = report.failures[0].path = evil
    texts: list[str] = []

    def gather(value: Any) -> None:
        if isinstance(value, Table):
            texts.extend(cell for row in value.rows for cell in row if isinstance(cell, str))
        elif isinstance(value, msgspec.Struct):
            for name in value.__struct_fields__:
                if name != "file":  # a path is a path: the pages write it with its letters visible
                    gather(getattr(value, name))
        elif isinstance(value, list):
            for one in value:
                gather(one)
        elif isinstance(value, str):
            texts.append(value)

    gather(page_of(report))
    gather(rank_page_of(report, 2))
    assert any("<script>" in text for text in texts)
    assert all(text.isprintable() for text in texts)


def test_a_single_rank_is_told_so(tmp_path: Path) -> None:
    TraceBuilder().step(1, 0, 1000).op("aten::mm", 0, 500).write(tmp_path / "one.json")
    asking = Asking(tmp_path)
    try:
        page = asking("distributed")
        assert (page["stragglers"], page["slowest"], len(page["ranks"])) == ([], [], 1)
        assert page["sentence"].startswith("Rank 0 is the only one here")
        alone = asking("rank", of=0)
        assert alone["sentence"].startswith("the only rank")
        assert {"more_ns", "typical_ns"}.isdisjoint(one["key"] for one in alone["work"]["columns"])
        assert alone["work"]["title"] == "The largest operators and kernels"
        assert asking("header")["hasRanks"] is False
    finally:
        asking.close()


def test_a_rank_whose_trace_is_cut_is_told_and_the_others_are_shown(tmp_path: Path) -> None:
    for number in range(3):
        built = TraceBuilder(distributedInfo={"rank": number, "world_size": 3, "backend": "gloo"})
        path = built.step(1, 0, 1000).op("aten::mm", 0, 500).write(tmp_path / f"rank{number}.json")
    path.write_text(path.read_text()[:-200])
    asking = Asking(tmp_path)
    try:
        page = asking("distributed")
        assert page["ranks"] == [0, 1]
        assert page["missing"] == "2"
        assert "rank2.json" in page["failures"][0]["path"]
    finally:
        asking.close()
