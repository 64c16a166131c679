"""Ranks merged: every number is the sum over them."""

import copy
import itertools
import math
import random
import statistics

import msgspec
import pytest

import built_profiles
from deepscope.errors import IncomparableError
from deepscope.records import Numbers, Profile, RankSpread, Totals
from deepscope.records.merging import RankRecords, spread_of
from deepscope.records.ranks import encoded_profile, merge_profiles


def ranks() -> list[Profile]:
    first, second = built_profiles.training(), built_profiles.training()
    second.trace.ranks = [1]
    second.trace.path = "/other/rank1.json"
    second.lines = [line for line in second.lines if line.function != "数える"]
    second.call_tree = second.call_tree[:3]
    second.lines[0].self_device_ns = 1
    second.lines[0].line += 100
    second.lines = [*second.lines[1:], second.lines[0]]
    for node in second.call_tree:  # the order of the lines is another one
        node.line = {0: 3, 1: 0, 2: 1}[node.line]
    second.steps[0].duration_ns += 7
    return [first, second]


def test_every_number_is_the_sum_over_the_ranks() -> None:
    first, second = ranks()
    merged = merge_profiles([first, second])
    for name in Numbers.__struct_fields__:
        whole = sum(getattr(line, name) for line in (*first.lines, *second.lines))
        assert sum(getattr(line, name) for line in merged.lines) == whole, name
        assert getattr(merged.no_line, name) == 2 * getattr(first.no_line, name)
    for name in Totals.__struct_fields__:
        if name not in {"steps", "ranks"}:
            assert getattr(merged.totals, name) == 2 * getattr(first.totals, name)
    assert (merged.totals.steps, merged.totals.ranks) == (2, 2)
    assert (merged.trace.ranks, merged.trace.paths) == ([0, 1], [first.trace.path, second.trace.path])


def test_lines_are_matched_and_carry_their_spread() -> None:
    merged = merge_profiles(ranks())
    places = {(line.line, line.function): line for line in merged.lines}
    assert len(merged.lines) == 6
    assert places[17, "Net.embed"].self_device_ns == 40_000_000
    assert places[17, "Net.embed"].spread == RankSpread(20_000_000, 0, 20_000_000, 20_000_000, 0)
    assert places[142, "Net.forward"].spread == RankSpread(0, 0, 0, 1, 1)
    assert places[7, "数える"].spread == RankSpread(0, 1, 4_000_000, 8_000_000, 0)
    assert [line.self_device_ns for line in merged.lines] == sorted(
        (line.self_device_ns for line in merged.lines), reverse=True
    )


@pytest.mark.parametrize(
    ("own_ns", "spread"),
    [
        ([5, 1, 9], RankSpread(1, 1, 5, 9, 2)),
        ([5, 1, 9, 8], RankSpread(1, 1, 6, 9, 2)),
        ([7, 7], RankSpread(7, 0, 7, 7, 0)),
        ([4, None, 6], RankSpread(0, 1, 4, 6, 2)),
    ],
)
def test_the_spread_of_lines_and_functions_has_the_median_of_all_ranks(
    own_ns: list[int | None], spread: RankSpread
) -> None:
    profiles = []
    for rank, own in enumerate(own_ns):
        profile = built_profiles.training()
        profile.trace.ranks = [rank]
        profile.lines, profile.functions = profile.lines[:1], profile.functions[:1]
        profile.call_tree = []
        for table in (profile.lines, profile.functions):
            if own is None:
                table.clear()
            else:
                table[0].self_device_ns = own
        profiles.append(profile)
    merged = merge_profiles(profiles)
    assert merged.lines[0].spread == spread
    assert merged.functions[0].spread == spread


@pytest.mark.parametrize("seed", range(20))
def test_a_spread_beside_ranks_without_a_record_is_that_of_all_of_them(seed: int) -> None:
    """The rule worked out rank by rank, negative numbers and ties among them."""
    rng = random.Random(seed)
    all_ranks = rng.sample(range(100), rng.randint(1, 9))
    own = {rank: rng.randint(-3, 3) for rank in all_ranks if rng.random() < 0.6}
    if not own:
        own[all_ranks[0]] = 1
    records = [_Number(value) for value in own.values()]
    group = RankRecords(records, list(own), {rank: place for place, rank in enumerate(all_ranks)})
    values = [own.get(rank, 0) for rank in all_ranks]
    low, high = min(values), max(values)
    assert spread_of("value")(group, "") == RankSpread(
        low,
        all_ranks[values.index(low)],
        math.floor(statistics.median(values)),
        high,
        all_ranks[values.index(high)],
    )


class _Number(msgspec.Struct):
    value: int


def test_encoded_profiles_merge_to_the_same_profile() -> None:
    for profiles in (ranks(), [built_profiles.training(), built_profiles.training(), *ranks()]):
        encoded = [encoded_profile(msgspec.msgpack.encode(profile)) for profile in profiles]
        assert merge_profiles(encoded) == merge_profiles(profiles)


def test_steps_are_matched_by_number() -> None:
    first, second = ranks()
    second.steps[1].number = 9
    merged = merge_profiles([first, second])
    assert [step.number for step in merged.steps] == [2, 3, 9]
    assert merged.steps[0].duration_ns == 110_000_007
    assert merged.steps[0].spread == RankSpread(55_000_000, 0, 55_000_003, 55_000_007, 1)
    assert merged.totals.steps == 3
    for step in merged.steps:
        assert set(step.phases) == {"data", "forward", "backward"}


def test_call_paths_are_joined_where_the_lines_above_agree() -> None:
    profiles = ranks()
    merged = merge_profiles(profiles)
    weight = sum(node.self_device_ns for profile in profiles for node in profile.call_tree)
    assert sum(node.self_device_ns for node in merged.call_tree) == weight
    assert len(merged.call_tree) == 6  # the second rank's line 142 is the only path of its own
    root = merged.call_tree[0]
    assert (merged.lines[root.line].function, root.self_device_ns) == ("main", 24_000_000)
    assert all(node.parent < place for place, node in enumerate(merged.call_tree))


def test_kernels_keep_their_mean_and_largest() -> None:
    first, second = ranks()
    second.kernels[0].max_ns = 99_000_000
    second.kernels[0].calls = 2
    kernel = merge_profiles([first, second]).kernels[0]
    assert (kernel.calls, kernel.max_ns, kernel.mean_ns) == (50, 99_000_000, 2_400_000)


@pytest.mark.parametrize(
    ("told", "smallest"),
    [([(256, 1024, 4096), (0, 0, 0)], 1024), ([(256, 1024, 4096), (128, 0, 0)], 0), ([(0, 0, 0)] * 2, 0)],
    ids=["a rank that does not tell", "a rank that has none", "no rank tells"],
)
def test_the_least_shared_memory_is_that_of_the_ranks_which_tell_it(
    told: list[tuple[int, int, int]], smallest: int
) -> None:
    profiles = ranks()
    for profile, (threads, low, high) in zip(profiles, told, strict=True):
        kernel = profile.kernels[0]
        kernel.min_threads = kernel.max_threads = threads
        kernel.min_shared_memory_bytes, kernel.max_shared_memory_bytes = low, high
    kernel = merge_profiles(profiles).kernels[0]
    assert (kernel.min_shared_memory_bytes, kernel.max_shared_memory_bytes) == (smallest, max(one[2] for one in told))


def test_the_order_of_the_ranks_changes_no_number() -> None:
    results = []
    for order in itertools.permutations(ranks()):
        merged = merge_profiles([copy.deepcopy(profile) for profile in order])
        results.append((merged.totals, merged.no_line, {(line.line, line.self_device_ns) for line in merged.lines}))
    assert results[0] == results[1]


def test_merging_leaves_its_input_alone_and_one_rank_as_it_is() -> None:
    profiles = ranks()
    before = copy.deepcopy(profiles)
    merge_profiles(profiles)
    assert profiles == before
    assert merge_profiles(profiles[:1]) is profiles[0]


def test_ranks_with_and_without_a_device_do_not_add_up() -> None:
    with pytest.raises(IncomparableError, match="no device events while other ranks have; choose one rank"):
        merge_profiles([built_profiles.training(), built_profiles.cpu_only()])
