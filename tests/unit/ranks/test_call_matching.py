"""Which calls of several ranks are the same one."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deepscope.ranks.call_matching import MatchedCalls, match
from deepscope.ranks.collective_calls import gather
from matched_ranks import EPOCH, Call, rank

MS = 1_000_000


@dataclass(frozen=True)
class Truth:
    """A run whose calls are known: `ends[i]` of call i is the same on all ranks."""

    kinds: list[str]
    sizes: list[int]
    steps: list[int]
    ends: list[int]
    lengths: list[list[int]]
    """By rank and call."""


def run(ranks: int, steps: int, per_step: int, *, seed: int, same: bool = False) -> Truth:
    """Steps of the same calls; the times between calls vary."""
    chance = random.Random(seed)
    kinds = [chance.choice(("all_reduce", "all_gather", "reduce_scatter", "all_to_all")) for _ in range(per_step)]
    sizes = [1 << chance.randrange(4, 20) for _ in range(per_step)]
    if same:
        kinds, sizes = ["all_reduce"] * per_step, [4096] * per_step
    ends, at = [], 0
    for _ in range(steps * per_step):
        at += 10 * MS + chance.randrange(5 * MS)
        ends.append(at)
    lengths = [[chance.randrange(1, 4 * MS) for _ in ends] for _ in range(ranks)]
    return Truth(kinds * steps, sizes * steps, [s for s in range(steps) for _ in range(per_step)], ends, lengths)


def recorded(
    truth: Truth, windows: list[tuple[int, int]], *, numbered: bool, stepped: bool, offsets: list[int]
) -> MatchedCalls:
    """Each rank's window of the run, matched."""
    members = f"0-{len(windows) - 1}"
    summaries = []
    for number, (begin, end) in enumerate(windows):
        calls = [
            Call(
                truth.ends[i] - truth.lengths[number][i] + offsets[number],
                truth.ends[i] + offsets[number],
                truth.kinds[i],
                members,
                truth.sizes[i],
                step=truth.steps[i] if stepped else -1,
                sequence=100 + i if numbered else -1,
            )
            for i in range(begin, end)
        ]
        summaries.append(rank(number, calls, world=len(windows)))
    return match(gather(summaries))


def truths_of(matches: MatchedCalls, truth: Truth, offsets: list[int]) -> list[set[int]]:
    """By matched call the calls of the run that its ranks' calls are."""
    calls, found = matches.calls, defaultdict(set)
    for place in np.flatnonzero(matches.match >= 0).tolist():
        end = int(calls.end_ns[place]) - EPOCH - offsets[int(calls.rank[place])]
        found[int(matches.match[place])].add(truth.ends.index(end))
    return list(found.values())


@st.composite
def windowed(draw: st.DrawFn) -> tuple[Truth, list[tuple[int, int]], list[int]]:
    ranks, steps, per_step = draw(st.integers(2, 5)), draw(st.integers(2, 6)), draw(st.integers(1, 6))
    truth = run(ranks, steps, per_step, seed=draw(st.integers(0, 10**6)), same=draw(st.booleans()))
    count = steps * per_step
    windows = []
    for _ in range(ranks):
        begin = draw(st.integers(0, count - 1))
        windows.append((begin, draw(st.integers(begin + 1, count))))
    return truth, windows, [draw(st.integers(-(10**12), 10**12)) for _ in range(ranks)]


@given(windowed())
def test_by_torchs_numbers_just_the_calls_in_all_windows_are_matched(
    case: tuple[Truth, list[tuple[int, int]], list[int]],
) -> None:
    truth, windows, offsets = case
    matches = recorded(truth, windows, numbered=True, stepped=False, offsets=offsets)
    common = range(max(begin for begin, _ in windows), min(end for _, end in windows))
    found = truths_of(matches, truth, offsets)
    assert all(len(one) == 1 for one in found)
    if common:
        assert {one.pop() for one in found} == set(common)
        assert matches.is_complete.all()
    assert matches.by_sequence.all()


def assume_told(windows: list[tuple[int, int]]) -> None:
    """Windows with as many calls and no other sign are taken to be of the same calls: here they are."""
    longest = max(end - begin for begin, end in windows)
    assume(len({one for one in windows if one[1] - one[0] == longest}) == 1)


@given(windowed())
def test_by_steps_no_call_is_matched_with_another_one(case: tuple[Truth, list[tuple[int, int]], list[int]]) -> None:
    """Where windows are cut within steps, as many calls of a step are taken to be the same: here they are."""
    truth, windows, offsets = case
    assume_told(windows)
    of_step: dict[tuple[int, int], set[int]] = {}
    for begin, end in windows:
        for step in set(truth.steps[begin:end]):
            own = [i for i in range(begin, end) if truth.steps[i] == step]
            of_step.setdefault((step, len(own)), set()).add(own[0])
    assume(all(len(begins) == 1 for begins in of_step.values()))
    matches = recorded(truth, windows, numbered=False, stepped=True, offsets=offsets)
    assert all(len(one) == 1 for one in truths_of(matches, truth, offsets))
    assert not matches.by_sequence.any()


@given(windowed())
def test_by_the_calls_alone_no_call_is_matched_with_another_one(
    case: tuple[Truth, list[tuple[int, int]], list[int]],
) -> None:
    truth, windows, offsets = case
    assume_told(windows)
    longest = max(end - begin for begin, end in windows)
    common = range(max(begin for begin, _ in windows), min(end for _, end in windows))
    assume(len(common) >= 0.8 * longest)
    matches = recorded(truth, windows, numbered=False, stepped=False, offsets=offsets)
    assert all(len(one) == 1 for one in truths_of(matches, truth, offsets))


@given(windowed())
def test_whole_steps_are_matched_whatever_windows_have_of_them(
    case: tuple[Truth, list[tuple[int, int]], list[int]],
) -> None:
    truth, windows, offsets = case
    per_step = truth.steps.count(0)
    whole = [(begin // per_step * per_step, -(-end // per_step) * per_step) for begin, end in windows]
    matches = recorded(truth, whole, numbered=False, stepped=True, offsets=offsets)
    common = range(max(begin for begin, _ in whole), min(end for _, end in whole))
    found = truths_of(matches, truth, offsets)
    assert all(len(one) == 1 for one in found)
    if common:
        assert {one.pop() for one in found} == set(common)


@pytest.mark.parametrize("late", [0, 1, 3])
def test_a_window_that_begins_some_calls_later_is_laid_at_its_place(late: int) -> None:
    truth = run(3, 4, 5, seed=7)
    windows = [(0, 20), (late, 20), (0, 20 - late)]
    for stepped in (True, False):
        matches = recorded(truth, windows, numbered=False, stepped=stepped, offsets=[0, 5 * MS, -3 * MS])
        found = truths_of(matches, truth, [0, 5 * MS, -3 * MS])
        assert {one.pop() for one in found} == set(range(late, 20 - late))


@pytest.mark.parametrize("per_step", [8, 20, 40, 60])
@pytest.mark.parametrize("windows", [((0, 3), (1, 3)), ((0, 3), (1, 4)), ((0, 4), (1, 4)), ((0, 2.25), (1, 2.25))])
def test_a_window_that_begins_a_step_later_is_not_laid_a_step_off(
    per_step: int, windows: tuple[tuple[float, float], ...]
) -> None:
    """Calls that are all alike, in steps that are much alike, which nothing numbers."""
    chance = random.Random(per_step)
    us, inside = 1000, sorted(chance.randrange(90_000) for _ in range(per_step))
    begins = [100_000 * step + chance.randrange(1_000) for step in range(4)]
    ends = [(begin + after) * us + chance.randrange(20 * us) for begin in begins for after in inside]
    truth = Truth(["all_reduce"] * len(ends), [4096] * len(ends), [], ends, [[50 * us] * len(ends)] * 2)
    of_calls = [(int(begin * per_step), int(end * per_step)) for begin, end in windows]
    matches = recorded(truth, of_calls, numbered=False, stepped=False, offsets=[0, 5 * MS])
    found = [one.pop() for one in truths_of(matches, truth, [0, 5 * MS]) if len(one) == 1]
    assert sorted(found) == list(range(of_calls[1][0], of_calls[0][1]))
    assert len(matches) == len(found)


def test_calls_that_cannot_be_told_from_each_other_are_left_alone() -> None:
    """All of one kind, at even times, in windows of different lengths, and without steps."""
    calls = [Call(100 * i, 100 * i + 10) for i in range(10)]
    assert len(match(gather([rank(0, calls), rank(1, calls[2:])]))) == 0


def test_as_many_calls_are_taken_to_be_the_same_ones() -> None:
    calls = [Call(100 * i, 100 * i + 10) for i in range(10)]
    assert len(match(gather([rank(0, calls), rank(1, calls)]))) == 10


def test_one_name_for_groups_of_other_ranks_does_not_bring_them_together() -> None:
    first, second = (
        [Call(i * 100, i * 100 + 10, ranks=ranks, sequence=i) for i in range(4)] for ranks in ("0-1", "2-3")
    )
    matches = match(gather([rank(i, first if i < 2 else second, world=4) for i in range(4)]))
    assert (len(matches), set(matches.ranks.tolist())) == (8, {2})
    assert matches.is_complete.all()


def test_one_group_on_devices_and_on_the_cpu_has_two_sequences() -> None:
    calls = [Call(i * 100, i * 100 + 10, sequence=i // 2, on_device=i % 2 == 0) for i in range(6)]
    assert len(match(gather([rank(0, calls), rank(1, calls)]))) == 6


def test_a_batch_under_one_number_is_told_apart_by_order() -> None:
    calls = [Call(i * 100, i * 100 + 10, size=1024 << i, sequence=5) for i in range(3)]
    matches = match(gather([rank(0, calls), rank(1, calls)]))
    assert len(matches) == 3


def test_calls_under_one_number_that_differ_in_kind_are_no_match() -> None:
    one = [Call(0, 10, "all_reduce", sequence=5)]
    other = [Call(0, 10, "all_gather", sequence=5)]
    assert len(match(gather([rank(0, one), rank(1, other)]))) == 0


def test_of_a_missing_rank_the_others_calls_are_still_matched() -> None:
    calls = [Call(i * 100, i * 100 + 10, ranks="0-2", sequence=i) for i in range(4)]
    matches = match(gather([rank(0, calls, world=3), rank(2, calls, world=3)]))
    assert (len(matches), matches.is_complete.any()) == (4, False)


def test_a_rank_that_tells_no_number_sends_all_to_the_order() -> None:
    told = [Call(i * 100, i * 100 + 10, size=1 << (5 + i), sequence=i) for i in range(5)]
    untold = [one._replace(sequence=-1) for one in told[1:]]
    matches = match(gather([rank(0, told), rank(1, untold)]))
    assert (len(matches), matches.by_sequence.any()) == (4, False)


def unnamed(ranks: int, kinds: str, **of_rank: str) -> list[Call]:
    kind = {"r": "all_reduce", "a": "all_to_all", "s": "send_recv"}
    return [Call(i * 100, i * 100 + 10, kind[one], "", group="", size=0, step=0) for i, one in enumerate(kinds)]


def swapped(*kinds: str) -> list[Call]:
    """A step of each of these, whose calls end together."""
    kind = {"r": "all_reduce", "a": "all_to_all"}
    return [
        Call(step * 1000 + i * 10, step * 1000 + 900, kind[one], "0-1", size=64, step=step)
        for step, of_step in enumerate(kinds)
        for i, one in enumerate(of_step)
    ]


def test_calls_that_threads_began_in_another_order_are_matched_step_by_step() -> None:
    usual, other = swapped("raa", "raa", "raa"), swapped("ara", "raa", "raa")
    matches = match(gather([rank(0, usual, world=2), rank(1, other, world=2)]))
    assert len(matches) == 9
    calls = matches.calls
    for one in range(9):
        token, step = calls.token[matches.match == one], calls.step[matches.match == one]
        assert token[0] == token[1]
        assert step[0] == step[1]
    less = match(gather([rank(0, usual, world=2), rank(1, swapped("ra", "raa", "ara", "ara"), world=2)]))
    assert len(less) == 0  # a step that both have has other calls


def test_without_any_group_all_ranks_are_one_if_they_make_the_same_calls() -> None:
    same = [rank(i, unnamed(3, "rar"), world=3, groups=0) for i in range(3)]
    assert len(match(gather(same))) == 3
    other = [*same[:2], rank(2, unnamed(3, "rrr"), world=3, groups=0)]
    assert len(match(gather(other))) == 0
    assert len(match(gather(same[:2]))) == 0  # a rank is missing: it may have made other calls
    several = [rank(i, unnamed(3, "rar"), world=3, groups=2) for i in range(3)]
    assert len(match(gather(several))) == 0  # there are groups, and nothing tells whose calls these are


def test_a_kernel_of_nccl_that_may_be_an_all_to_all_is_one_where_another_rank_says_so() -> None:
    ranks = [rank(i, unnamed(2, kinds), world=2, groups=0) for i, kinds in enumerate(("rarr", "rsrr"))]
    matches = match(gather(ranks))
    assert len(matches) == 4
    assert [matches.calls.rows[row].kind for row in matches.row.tolist()] == [
        "all_reduce", "all_to_all", "all_reduce", "all_reduce",
    ]  # fmt: skip
    messages = [rank(i, unnamed(2, "rsrr"), world=2, groups=0) for i in range(2)]
    assert len(match(gather(messages))) == 3


def test_ranks_in_another_order_change_nothing() -> None:
    truth = run(4, 3, 4, seed=3)
    windows, offsets = [(0, 12), (1, 12), (0, 11), (2, 12)], [0, MS, 2 * MS, -MS]
    members = "0-3"
    summaries = [
        rank(
            number,
            [
                Call(truth.ends[i] + offsets[number] - 5, truth.ends[i] + offsets[number], truth.kinds[i], members,
                     truth.sizes[i], step=truth.steps[i])
                for i in range(*windows[number])
            ],
            world=4,
        )
        for number in range(4)
    ]  # fmt: skip
    expected = sorted(map(sorted, truths_of(match(gather(summaries)), truth, offsets)))
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        found = truths_of(match(gather([summaries[i] for i in order])), truth, offsets)
        assert sorted(map(sorted, found)) == expected == [[i] for i in range(2, 11)]


def test_nothing_to_match() -> None:
    assert len(match(gather([rank(0, []), rank(1, [])]))) == 0
