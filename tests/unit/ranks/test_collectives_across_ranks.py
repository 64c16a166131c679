"""Arrivals, waiting and transfer over the ranks; process groups; the ranks' clocks."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepscope.ranks.ascend import domain_rows
from deepscope.ranks.collectives import role_of
from deepscope.ranks.rank_summary import AscendCalls, AscendGroup, AscendRank
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from matched_ranks import Call, rank

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000


def of(*calls: list[Call], world: int | None = None) -> RanksReport:
    return side_by_side([rank(number, own, world=world or len(calls)) for number, own in enumerate(calls)])


def test_a_call_takes_what_it_takes_on_the_rank_that_came_last() -> None:
    first = [Call(0, 100, sequence=1), Call(200, 250, sequence=2)]
    second = [Call(70, 100, sequence=1), Call(210, 250, sequence=2)]
    report = of(first, second)
    (row,) = report.collectives
    assert (row.calls, row.matched, row.time_ns, row.by_sequence) == (2, 2, 220, True)
    assert (row.transfer_ns, row.wait_ns) == (30 + 40, 70 + 10)
    assert row.transfer_ns * 2 + row.wait_ns == row.time_ns
    assert (row.spread_ns, row.max_spread_ns) == ((70 + 10) // 2, 70)
    assert (row.last_rank, row.last_calls) == (1, 2)
    assert row.bus_bytes_per_s == round(2 * 1024 * 10**9 / 70)  # two ranks: a factor of 1
    assert [(one.waited_ns, one.last, one.matched) for one in report.ranks] == [(80, 0, 2), (0, 2, 2)]
    (group,) = report.groups
    assert (group.here, group.size, group.wait_ns, group.calls) == (2, 2, 80, 4)


def test_calls_beyond_those_that_are_kept_are_taken_to_wait_as_long() -> None:
    """Of four steps of two calls the calls of the first two are kept."""
    ranks = []
    for number, comes in enumerate((0, 60)):
        calls = [Call(200 * i + comes, 200 * i + 100, step=i // 2, sequence=i) for i in range(4)]
        one = rank(number, calls)
        rows = [msgspec.structs.replace(row, calls=8, time_ns=2 * row.time_ns) for row in one.collectives]
        totals = msgspec.structs.replace(one.totals, steps=4)
        ranks.append(msgspec.structs.replace(one, collectives=rows, totals=totals))
    assert [(row.waited_ns, row.last, row.matched) for row in side_by_side(ranks).ranks] == [(120, 0, 4), (0, 4, 4)]


def test_nobody_is_last_where_several_come_at_one_time() -> None:
    (row,) = of([Call(0, 100, sequence=1)], [Call(0, 100, sequence=1)]).collectives
    assert (row.wait_ns, row.spread_ns, row.last_rank, row.last_calls) == (0, 0, None, 0)


def test_nobody_is_last_to_the_calls_of_a_group_of_one() -> None:
    own = [[Call(100 * i, 100 * i + 10, ranks=str(number), group="tp") for i in range(10)] for number in range(2)]
    both = [Call(5000, 5100, sequence=1)], [Call(5050, 5100, sequence=1)]
    report = of([*own[0], *both[0]], [*own[1], *both[1]])
    assert [(one.waited_ns, one.last) for one in report.ranks] == [(50, 0), (0, 1)]
    assert [(row.group_ranks, row.transfer_ns, row.last_rank) for row in report.collectives] == [
        ("0-1", 50, 1), ("0", 100, None), ("1", 100, None),
    ]  # fmt: skip


def test_a_trace_that_tells_neither_groups_nor_ranks_is_not_beside_itself() -> None:
    calls = [Call(0, 100, ranks="", group=""), Call(200, 250, ranks="", group="")]
    report = side_by_side([rank(0, calls, world=1, groups=0)])
    assert [(one.waited_ns, one.last, one.matched) for one in report.ranks] == [(None, None, 0)]
    assert [(row.matched, row.transfer_ns, row.wait_ns, row.last_rank) for row in report.collectives] == [
        (0, None, None, None)
    ]


def test_without_all_ranks_of_the_group_waiting_is_told_and_transfer_is_not() -> None:
    calls = [[Call(0, 100, ranks="0-2", sequence=1)], [Call(60, 100, ranks="0-2", sequence=1)]]
    report = of(*calls, world=3)
    (row,) = report.collectives
    assert (row.matched, row.transfer_ns, row.bus_bytes_per_s, row.wait_ns, row.spread_ns) == (1, None, None, 60, 60)
    assert [one.waited_ns for one in report.ranks] == [60, 0]


def test_who_comes_last_to_a_broadcast_is_told_by_aligned_clocks_and_waiting_is_not() -> None:
    """The root, rank 0, comes last and leaves first."""
    clock = 5 * SECOND
    calls = []
    for number, start, end in ((0, 900, 920), (1, 100, 960)):
        shift = number * clock
        common = [Call(shift + at, shift + at + 50, sequence=i) for i, at in enumerate((0, 10_000, 20_000))]
        calls.append([common[0], Call(shift + start, shift + end, "broadcast", sequence=9), *common[1:]])
    report = of(*calls)
    row = next(one for one in report.collectives if one.kind == "broadcast")
    assert (row.matched, row.transfer_ns, row.wait_ns) == (1, None, None)
    assert (row.spread_ns, row.last_rank) == (800, 0)
    assert [one.offset_ns for one in report.clocks] == [0, -clock]


def test_a_message_of_other_sizes_on_each_rank_stands_in_the_row_of_the_largest() -> None:
    calls = [[Call(0, 100, "all_to_all", size=4096 << number, sequence=1)] for number in range(2)]
    (row,) = of(*calls).collectives
    assert (row.size_class_bytes, row.ranks, row.matched, row.time_ns, row.transfer_ns) == (8192, 2, 1, 200, 100)


@st.composite
def runs(draw: st.DrawFn) -> list[list[Call]]:
    ranks, count = draw(st.integers(2, 6)), draw(st.integers(1, 12))
    kinds = ["all_reduce", "all_gather", "broadcast", "barrier", "all_to_all"]
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    for number in range(count):
        kind, size = draw(st.sampled_from(kinds)), draw(st.integers(0, 10**6))
        members = draw(st.sampled_from(["0-1", f"0-{ranks - 1}", f"0-{ranks}"]))
        for own in range(ranks):
            if own > 1 and members == "0-1":
                continue
            end = (number + 1) * 1000 + draw(st.integers(0, 20))
            calls[own].append(Call(end - draw(st.integers(1, 900)), end, kind, members, size, sequence=number))
    return calls


@given(runs())
def test_waiting_and_transfer_are_the_time_of_matched_calls_and_all_time_stands_in_one_row(
    calls: list[list[Call]],
) -> None:
    report = of(*calls, world=len(calls) + 1)
    assert sum(row.time_ns for row in report.collectives) == sum(one.end - one.start for own in calls for one in own)
    assert sum(group.time_ns for group in report.groups) == sum(row.time_ns for row in report.collectives)
    assert sum(group.wait_ns or 0 for group in report.groups) == sum(row.wait_ns or 0 for row in report.collectives)
    waited = sum(one.waited_ns or 0 for one in report.ranks)
    assert waited == sum(row.wait_ns or 0 for row in report.collectives)
    for row in report.collectives:
        if row.transfer_ns is not None and row.matched == row.calls:
            assert row.transfer_ns * row.ranks + (row.wait_ns or 0) == row.time_ns


ENDS = [i * 100 * MS for i in range(1, 101)]


def clocked(
    offsets: list[int], drifts: list[float], *, groups: list[str], jitter: int = 0, seed: int = 0
) -> RanksReport:
    """Ranks whose clocks are wrong by an offset and a drift (a share), with calls in several groups."""
    chance = random.Random(seed)
    calls: list[list[Call]] = [[] for _ in offsets]
    for number, end in enumerate(ENDS):
        for members in groups:
            first, last = map(int, members.split("-"))
            for own in range(first, last + 1):
                told = end + offsets[own] + round(drifts[own] * end) + chance.randrange(jitter + 1)
                calls[own].append(Call(told - chance.randrange(1, 10 * MS), told, ranks=members, sequence=number))
    return of(*calls)


@given(st.lists(st.integers(-(10**15), 10**15), min_size=2, max_size=6))
def test_planted_offsets_are_found_to_the_nanosecond_where_ends_agree(offsets: list[int]) -> None:
    report = clocked(offsets, [0.0] * len(offsets), groups=[f"0-{len(offsets) - 1}"])
    assert [one.offset_ns for one in report.clocks] == [offsets[0] - one for one in offsets]
    assert all(one.residual_ns == one.drift_ns_per_s == 0 and one.calls == 100 for one in report.clocks)


@pytest.mark.parametrize("jitter", [0, 20 * US])
def test_offsets_are_found_through_groups_that_share_a_rank(jitter: int) -> None:
    offsets = [0, 3 * MS, -7 * SECOND, 5 * SECOND, 11]
    report = clocked(offsets, [0.0] * 5, groups=["0-1", "1-2", "2-4"], jitter=jitter)
    for one, offset in zip(report.clocks, offsets, strict=True):
        assert abs((one.offset_ns or 0) + offset) <= 3 * jitter
        assert one.residual_ns <= jitter


def test_planted_drifts_are_found() -> None:
    drifts = [0.0, 20e-6, -45e-6, 0.0]
    report = clocked([0, MS, -MS, 7], drifts, groups=["0-1", "1-3"], jitter=10 * US)
    assert [one.drift_ns_per_s for one in report.clocks] == pytest.approx([0, -20_000, 45_000, 0], abs=500)
    assert report.clocks[3].drift_ns_per_s == pytest.approx(0, abs=500)
    assert all(one.residual_ns <= 10 * US for one in report.clocks)


def test_noise_is_no_drift() -> None:
    for seed in range(20):
        report = clocked([0, MS, -MS], [0.0] * 3, groups=["0-2"], jitter=200 * US, seed=seed)
        assert [one.drift_ns_per_s for one in report.clocks] == [0, 0, 0]


def test_ranks_that_no_collective_leads_to_have_no_offset() -> None:
    report = clocked([0, 5, 9, 11], [0.0] * 4, groups=["0-1", "2-3"])
    assert [one.offset_ns for one in report.clocks] == [0, -5, None, None]


@pytest.mark.parametrize(
    ("description", "role"),
    [
        ("mesh_dp", "data"),
        ("mesh_dp_shard", "data"),
        ("mesh_dp_replicate", "data"),
        ("mesh_dp_shard_cp", "data"),
        ("mesh_dp_cp", "data"),
        ("mesh_dp_shard_mod_ep", "data"),
        ("mesh_fsdp", "data"),
        ("fsdp_reduce_scatter", "data"),
        ("mesh_data_parallel", "data"),
        ("mesh_tp", "tensor"),
        ("mesh_tensor_parallel", "tensor"),
        ("mesh_pp", "pipeline"),
        ("mesh_ep", "expert"),
        ("mesh_cp", "context"),
        ("mesh_sp", "sequence"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"),
        ("DATA_PARALLEL_GROUP", "data"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "data"),
        ("DATA_PARALLEL_GROUP_GLOO", "data"),
        ("CONTEXT_PARALLEL_GROUP", "context"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "expert"),
        ("EXPERT_TENSOR_PARALLEL_GROUP", "tensor"),
        ("EXPERT_DATA_PARALLEL_GROUP", "data"),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", ""),
        ("TENSOR_AND_CONTEXT_PARALLEL_GROUP", ""),
        ("MODEL_PARALLEL_GROUP", ""),
        ("EMBEDDING_GROUP", ""),
        ("default_pg", "world"),
        ("default_pg:split:3", ""),
        ("undefined", ""),
        ("evens", ""),
        ("", ""),
    ],
)
def test_a_groups_role_is_told_by_its_description(description: str, role: str) -> None:
    assert role_of(description, "0-3", 8) == role


def test_a_group_of_all_ranks_is_the_world_unless_it_has_another_role() -> None:
    assert (role_of("undefined", "0-7", 8), role_of("mesh_dp", "0-7", 8), role_of("", "", 8)) == ("world", "data", "")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("tp", "tensor"), ("dp", "data"), ("dp_cp", "data"), ("pp_new_stream", "pipeline"), ("cp", "context"),
        ("cp_ulysses", "context"), ("cp_ring", "context"),
        ("exp", "expert"), ("tp_exp", "tensor"), ("dp_modulo_exp", "data"), ("default_group", "world"),
        ("mp", ""), ("tp_dp", ""), ("tp_dp_cp", ""), ("tp_cp", ""), ("embd", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_domains_role_is_told_by_its_name_as_a_groups_is(name: str, role: str) -> None:
    """Names that Megatron-LM and MindSpeed give to groups."""
    calls = [AscendCalls(group="7", kind="all_reduce", calls=1, elapsed_ns=10)]
    tables = AscendRank(groups=[AscendGroup(key="7", name=name, ranks=[0, 1])], calls=calls)
    (row,) = domain_rows([msgspec.structs.replace(rank(0, []), ascend=tables)])
    assert (row.domain, row.role) == (name, role)


def test_a_thousand_ranks_take_seconds() -> None:
    """Without a limit on time here; the numbers are right at that size."""
    ranks, count = 1024, 40
    calls = []
    for own in range(ranks):
        rows = []
        for number in range(count):
            late = 500 if own == 700 and number % 2 else own % 7
            rows.append(Call(number * 1000 + late, number * 1000 + 900, ranks=f"0-{ranks - 1}", step=number // 4))
        calls.append(rows)
    report = of(*calls)
    assert report.ranks[700].last == count // 2
    assert len(report.clocks) == ranks
    assert np.all([one.matched == count for one in report.ranks])


def send(start: int, end: int, peer: int, *, size: int = 1000, step: int = -1) -> Call:
    return Call(start, end, "send", "0-2", size, step, peer=peer)


def receive(start: int, end: int, peer: int, *, size: int = 1000, step: int = -1) -> Call:
    return Call(start, end, "recv", "0-2", size, step, peer=peer)


def test_messages_are_found_on_both_sides_by_pair_and_order() -> None:
    ranks = [
        rank(0, [send(0, 30, 1), send(40, 50, 2, size=64), send(100, 120, 1)], world=3),
        rank(1, [receive(20, 30, 0), receive(90, 120, 0), send(130, 140, 0)], world=3),
        rank(2, [receive(10, 50, 0, size=64)], world=3),
    ]
    report = side_by_side(ranks)
    found = {(row.source, row.target): row for row in report.pairs}
    assert set(found) == {(0, 1), (0, 2), (1, 0)}
    one = found[0, 1]
    assert (one.messages, one.bytes, one.time_ns, one.transfer_ns) == (2, 2000, 10 + 30, 10 + 20)
    assert (found[0, 2].bytes, found[0, 2].time_ns, found[0, 2].transfer_ns) == (64, 40, 10)
    unmet = found[1, 0]  # nobody received it within the window
    assert (unmet.messages, unmet.time_ns, unmet.transfer_ns) == (1, 10, None)
    assert report.collectives == []


def test_windows_that_begin_apart_bring_only_the_same_messages_together() -> None:
    ranks = [
        rank(0, [send(100 * i, 100 * i + 50, 1, step=i // 2) for i in range(4)]),
        rank(1, [receive(100 * i + 20, 100 * i + 50, 0, step=i // 2) for i in range(2, 4)]),
    ]
    (row,) = side_by_side(ranks).pairs
    assert (row.messages, row.transfer_ns) == (4, 60)
    assert row.bytes_per_s == round(2 * 1000 / 60 * 10**9)


def test_messages_that_cannot_be_told_from_each_other_have_no_transfer() -> None:
    ranks = [
        rank(0, [send(100 * i, 100 * i + 50, 1) for i in range(6)]),
        rank(1, [receive(100 * i, 100 * i + 30, 0) for i in range(3)]),
    ]
    (row,) = side_by_side(ranks).pairs
    assert (row.messages, row.time_ns, row.transfer_ns) == (6, 90, None)
    assert row.bytes_per_s == round(3 * 1000 / 90 * 10**9)


def test_a_message_of_an_unknown_peer_is_no_pair() -> None:
    assert side_by_side([rank(0, [send(0, 10, -1)]), rank(1, [receive(0, 10, -1)])]).pairs == []
