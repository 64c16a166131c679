"""Synthetic ranks keep the rules that a run's traces keep, and what was planted is in them."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.store.ranks import read_ranks
from recorded_traces import needs_shared_traces
from synthetic_ranks.ranks import write_ranks

RANKS, EACH = 32, 1

pytestmark = needs_shared_traces


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("synthetic") / "run"
    return folder, write_ranks(folder, ranks=RANKS, each=EACH, steps=2, collectives=8)


@pytest.fixture(scope="module")
def traces(run: tuple[Path, Any]) -> dict[int, dict[str, Any]]:
    folder, _ = run
    named = {int(re.search(r"rank(\d+)\.", path.name)[1]): path for path in folder.iterdir()}  # type: ignore[index]
    return {rank: json.loads(gzip.decompress(path.read_bytes())) for rank, path in sorted(named.items())}


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def spans(trace: dict[str, Any]) -> list[tuple[int, int, dict[str, Any]]]:
    found = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    return [(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]), event) for event in found]


def test_every_rank_says_who_it_is(traces: dict[int, dict[str, Any]]) -> None:
    assert sorted(traces) == list(range(RANKS))
    for rank, trace in traces.items():
        assert trace["distributedInfo"]["rank"] == trace["deepscope"]["rank"] == rank
        assert trace["distributedInfo"]["world_size"] == RANKS
        assert all(rank in group["ranks"] for group in trace["distributedInfo"]["pg_config"])
        assert [group["pg_desc"] for group in trace["distributedInfo"]["pg_config"]] == [
            "default_pg", "mesh_tp", "mesh_dp", "mesh_pp"
        ]  # fmt: skip


def test_calls_nest_streams_work_in_order_and_nothing_starts_before_its_launch(
    traces: dict[int, dict[str, Any]],
) -> None:
    for rank, trace in traces.items():
        found = spans(trace)
        launches = {e["args"]["correlation"]: start for start, _, e in found if e["cat"].startswith("cuda_")}
        on_device = [(start, end, e) for start, end, e in found if e["pid"] == 0]
        assert on_device
        assert all(launches[e["args"]["correlation"]] < start for start, _, e in on_device)
        open_until: list[int] = []
        for start, end, event in sorted(((s, e, v) for s, e, v in found if v["pid"] != 0), key=lambda o: (o[0], -o[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], (rank, event["name"])
            open_until.append(end)
        streams = defaultdict(list)
        for start, end, event in on_device:
            streams[event["tid"]].append((start, end))
        for one in streams.values():
            one.sort()
            assert all(behind[0] >= before[1] for before, behind in pairwise(one))


def test_a_collective_ends_on_all_ranks_together_after_the_last_one_came(
    run: tuple[Path, Any], traces: dict[int, dict[str, Any]]
) -> None:
    _, truth = run
    calls: dict[tuple[object, ...], dict[int, tuple[float, float]]] = defaultdict(dict)
    for rank, trace in traces.items():
        for start, end, event in spans(trace):
            told = event["args"]
            if event["cat"] == "kernel" and "Seq" in told:
                other = told.get("Dst Rank", told.get("Src Rank"))
                pair = () if other is None else (min(rank, other), max(rank, other))
                offset, drift = truth.offset_ns[rank], truth.drift[rank]
                local = [(at - 10**12 - offset) / (1 + drift) for at in (start, end)]
                calls[told["Process Group Name"], told["Seq"], pair][rank] = (local[0], local[1])
                assert len(json.loads(told["Process Group Ranks"])) == told["Group size"]
    assert {len(ranks) for ranks in calls.values()} == {2, 8}
    for ranks in calls.values():
        starts, ends = np.array(list(ranks.values())).T
        assert np.ptp(ends) < 10  # nanoseconds, by rounding
        assert abs(ends.max() - starts.max() - truth.transfer_ns) < 10


def test_the_ranks_of_a_host_share_a_clock(run: tuple[Path, Any]) -> None:
    _, truth = run
    assert truth.offset_ns[0] == truth.drift[0] == 0
    for host in range(RANKS // 8):
        assert len(set(truth.offset_ns[8 * host : 8 * host + 8])) == 1
    assert len(set(truth.offset_ns)) == RANKS // 8


def test_the_same_seed_makes_the_same_traces(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_ranks(tmp_path / name, ranks=2, steps=1, collectives=8, seed=seed)
    read = {name: [path.read_bytes() for path in sorted((tmp_path / name).iterdir())] for name in "abc"}
    assert read["a"] == read["b"] != read["c"]


def reported(folder: Path) -> RanksReport:
    read = read_ranks(folder, cache=False)
    return side_by_side(read.summaries, read.failures, str(folder))


def test_a_planted_rank_has_more_of_its_own(run: tuple[Path, Any]) -> None:
    folder, truth = run
    found = reported(folder)
    assert found.failures == []
    own = {row.rank: row.own_ns for row in found.ranks}
    stage = truth.tensor * truth.data
    planted = {one.rank: one for one in truth.stragglers}
    for one in planted.values():
        peers = [rank for rank in range(RANKS) if rank // stage == one.rank // stage and rank not in planted]
        excess = own[one.rank] - np.median([own[rank] for rank in peers])
        assert excess == pytest.approx(one.excess_ns, rel=0.25), one


def test_every_planted_straggler_is_found_with_its_cause_and_line(tmp_path: Path) -> None:
    truth = write_ranks(tmp_path / "run", ranks=64, each=1)
    assert {one.cause for one in truth.stragglers} == {"hardware", "work", "data", "host"}
    told = {one.rank: one for one in reported(tmp_path / "run").stragglers}
    for planted in truth.stragglers:
        assert planted.rank in told, planted
        one = told[planted.rank]
        assert one.cause == planted.cause, planted
        assert one.excess_ns == pytest.approx(planted.excess_ns, rel=0.25), planted
        if planted.file:
            assert (one.file, one.line) == (planted.file, planted.line), planted


def test_clocks_are_found(tmp_path: Path) -> None:
    truth = write_ranks(tmp_path / "run", ranks=64, each=1)
    clocks = {one.rank: one for one in reported(tmp_path / "run").clocks}
    assert sorted(clocks) == list(range(64))
    middle_ns = 150e6  # of the window: drift moves a clock by less than 2 µs from there
    for rank in range(64):
        offset = clocks[rank].offset_ns
        if offset is None:
            assert rank >= truth.tensor * truth.data  # messages alone lead to the pipeline's other stages
            continue
        # What is added to the rank's times brings them to rank 0's.
        assert offset == pytest.approx(-truth.offset_ns[rank] - truth.drift[rank] * middle_ns, abs=5_000)
