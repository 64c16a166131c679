"""The distributed page: each rank as its own report has it, and who waits for whom where the traces tell it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import Asking
from deepscope.dashboard.pages import distributed as page_module
from deepscope.records import Collective, Profile
from deepscope.records.ranks import merge_profiles
from deepscope.store.load import load_profile
from recorded_traces import needs_shared_traces, shared_paths
from trace_builder import TraceBuilder

RUNS = {"param-worker": 8, "torchrec": 4, "astra-sim": 2}
MS = 1_000_000


@pytest.fixture(scope="module", params=[pytest.param(name, marks=needs_shared_traces) for name in RUNS])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's ranks alone in a folder."""
    found = tmp_path_factory.mktemp("run")
    for path in shared_paths():
        if path.name.startswith(request.param):
            shutil.copy(path, found)
    return found


@pytest.fixture(scope="module")
def ask(folder: Path) -> Iterator[Asking]:
    asking = Asking(folder)
    yield asking
    asking.close()


def test_every_rank_is_there_with_the_numbers_of_its_own_profile(ask: Asking, folder: Path) -> None:
    page = ask("distributed")
    ranks = {row["rank"]: row for row in page["ranks"]}
    assert len(ranks) == len(list(folder.iterdir()))
    assert list(ranks) == sorted(ranks)
    for rank, row in ranks.items():
        profile = load_profile(folder, rank=rank)
        steps = max(profile.totals.steps, 1)
        assert row["stepNs"] == profile.totals.wall_ns // steps
        assert row["idleNs"] == profile.totals.idle_ns // steps
        assert row["syncNs"] == profile.totals.wait_ns // steps
        collective_ns = sum(line.collective_ns for line in [*profile.lines, profile.no_line])
        exposed_ns = sum(line.collective_exposed_ns for line in [*profile.lines, profile.no_line])
        assert row["communicationNs"] == collective_ns // steps
        assert row["exposedNs"] == exposed_ns // steps
        assert row["computeNs"] == (profile.totals.device_ns - collective_ns) // steps
        split = [one for one in profile.overview if one.section == "step"]
        assert dict(zip(page["partNames"], row["parts"], strict=True)) == {
            one.name: one.time_ns // one.steps for one in split
        }
        assert abs(sum(row["parts"]) - split[0].whole_ns // split[0].steps) <= len(split)
        assert row["ownNs"] == sum(row["parts"]) - row["parts"][page["partNames"].index("communication")]


def test_the_slowest_are_those_with_the_longest_own_time(ask: Asking) -> None:
    page = ask("distributed")
    own = {row["rank"]: row["ownNs"] for row in page["ranks"]}
    assert page["slowest"] == sorted(own, key=lambda rank: -own[rank])[:5]
    assert [one["rank"] for one in page["stragglers"]] == page["slowest"][: len(page["stragglers"])]


def test_a_chosen_rank_hides_no_other(ask: Asking) -> None:
    assert ask("distributed", rank=0) == ask("distributed")


def test_what_these_traces_do_not_tell_is_not_made_up(ask: Asking) -> None:
    page = ask("distributed")
    assert page["knowsWaits"] is False
    assert {(row["waitedNs"], row["last"]) for row in page["ranks"]} == {(None, None)}
    assert {"wait_ns", "spread_ns", "late"}.isdisjoint(column["key"] for column in page["collectives"]["columns"])


def test_collectives_are_those_of_the_report(ask: Asking, folder: Path) -> None:
    table = ask("distributed")["collectives"]
    at = [column["key"] for column in table["columns"]].index("time_ns")
    assert [row[at] for row in table["rows"]] == [row.time_ns for row in load_profile(folder).collectives]


@needs_shared_traces
def test_the_rank_of_torchrec_that_sleeps_is_named(tmp_path: Path) -> None:
    for path in shared_paths():
        if path.name.startswith("torchrec"):
            shutil.copy(path, tmp_path)
    asking = Asking(tmp_path)
    try:
        page = asking("distributed")
        (late,) = page["stragglers"]
        assert (late["rank"], late["part"]) == (2, "other")
        assert page["sentence"].startswith("Rank 2 holds the others up: ")
    finally:
        asking.close()


def rank_of(number: int, times: list[int], own_ms: int = 0, ranks: int = 3) -> Profile:
    """A rank with these calls of one all-reduce."""
    import built_profiles

    profile = built_profiles.training()
    profile.trace.ranks, profile.trace.world_size = [number], ranks
    profile.lines[0].cost_ns += own_ms * MS * profile.totals.steps
    profile.collectives = [
        Collective(
            kind="all_reduce", library="nccl", group="0", group_description="", group_ranks="0-2", group_size=3,
            dtype="float32", size_class_bytes=1024, on_device=True, calls=len(times), time_ns=sum(times),
            bytes=0, bytes_known_ns=0, bus_bytes=0, bus_known_ns=0, exposed_ns=sum(times), shortest_ns=times,
            min_ns=min(times), max_ns=max(times),
        )
    ]  # fmt: skip
    return profile


class _Ranks:
    """A library of these ranks."""

    def __init__(self, *profiles: Profile) -> None:
        self._profiles = list(profiles)

    def profile(self, _: Any) -> Profile:
        return merge_profiles(self._profiles)

    def ranks(self, _: Any) -> list[Profile]:
        return self._profiles


def page_of(*profiles: Profile) -> page_module.Distributed:
    from deepscope.dashboard.answer import Choice

    return page_module.distributed(_Ranks(*profiles), Choice())  # type: ignore[arg-type]


def test_the_rank_whose_calls_are_shortest_came_last_and_the_others_waited_for_it() -> None:
    profiles = [rank_of(0, [50 * MS, 9 * MS]), rank_of(1, [10 * MS, 8 * MS], own_ms=30), rank_of(2, [40 * MS, 7 * MS])]
    page = page_of(*profiles)
    assert page.knows_waits
    steps = profiles[0].totals.steps
    assert [row.waited_ns for row in page.ranks] == [42 * MS // steps, 1 * MS // steps, 30 * MS // steps]
    assert [row.last for row in page.ranks] == [0, 1, 1]
    merged = merge_profiles(profiles)
    assert sum(one.wait_ns or 0 for one in merged.collectives) == (42 + 1 + 30) * MS
    keys = [column.key for column in page.collectives.columns]
    row = dict(zip(keys, page.collectives.rows[0], strict=True))
    assert (row["spread_ns"], row["max_spread_ns"]) == (21 * MS, 40 * MS)
    assert row["late"] == "rank 1 (1 of 2)"
    worst = page.stragglers[0]
    assert worst.rank == 1
    assert worst.excess_ns == (42 + 30) * MS // 2 // steps - 1 * MS // steps
    assert (worst.file, worst.line) == (profiles[1].lines[0].file, profiles[1].lines[0].line)
    assert worst.line_ns == 30 * MS
    assert "they wait" in page.sentence


def test_without_one_rank_of_the_group_nobody_is_said_to_wait() -> None:
    page = page_of(rank_of(0, [50 * MS]), rank_of(1, [10 * MS]))
    assert not page.knows_waits
    assert page.missing == 1
    assert {row.waited_ns for row in page.ranks} == {None}


def test_with_another_number_of_calls_on_a_rank_nobody_is_said_to_wait() -> None:
    page = page_of(rank_of(0, [50 * MS]), rank_of(1, [10 * MS, MS]), rank_of(2, [20 * MS]))
    assert not page.knows_waits


def test_a_single_rank_is_told_so(tmp_path: Path) -> None:
    TraceBuilder().step(1, 0, 1000).op("aten::mm", 0, 500).write(tmp_path / "one.json")
    asking = Asking(tmp_path)
    try:
        page = asking("distributed")
        assert (page["stragglers"], page["slowest"], len(page["ranks"])) == ([], [], 1)
        assert page["sentence"].startswith("One rank was recorded")
        assert asking("header")["hasRanks"] is False
    finally:
        asking.close()
