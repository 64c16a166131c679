"""The time of rows by step: parts of the rows' numbers, and of the steps'."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.analysis.tables.steps import BLOCKS
from deepscope.records import Profile
from deepscope.records.ranks import merge_profiles
from deepscope.store import load_profile
from random_traces import random_trace
from recorded_traces import each_trace
from simulated_runs import profile_of_run
from trace_builder import TraceBuilder

FILE = "/job/train.py"


def times_of(profile: Profile, table: str) -> dict[int, tuple[dict[int, int], dict[int, int]]]:
    return {one.row: (one.device_ns, one.beside_ns) for one in profile.step_times if one.table == table}


def check(profile: Profile) -> None:
    """Each row's steps and what lies outside them are its number; all rows' of a step are the step's."""
    for one in profile.step_times:
        row = profile.no_line if one.row < 0 else getattr(profile, one.table)[one.row]
        number = row.device_ns if one.table == "kernels" else row.self_device_ns
        assert 0 <= sum(one.device_ns.values()) <= number
        if one.table in {"lines", "modules"}:
            assert sum(one.device_ns.values()) == row.self_in_steps_ns
        assert all(value > 0 for value in (*one.device_ns.values(), *one.beside_ns.values()))
        if one.table == "lines":
            beside = row.idle_ns if profile.metric == "device" else row.python_ns
            assert 0 <= sum(one.beside_ns.values()) <= beside
    by_block: dict[int, list[int]] = {}
    for step in profile.steps:
        sums = by_block.setdefault(step.number // profile.steps_per_block, [0, 0])
        sums[0] += step.device_ns
        sums[1] += step.idle_ns
    lines = times_of(profile, "lines")
    for row in (*profile.lines, *profile.functions, *profile.modules):
        assert 0 <= row.outside_ns <= row.self_device_ns
        assert row.outside_ns <= row.total_outside_ns <= row.total_device_ns
    if profile.steps:
        in_steps = sum(line.self_in_steps_ns for line in (*profile.lines, profile.no_line))
        assert in_steps == sum(step.device_ns for step in profile.steps)
    if len(lines) < 400:
        for block, (device_ns, idle_ns) in by_block.items():
            assert sum(device.get(block, 0) for device, _ in lines.values()) == device_ns
            if profile.metric == "device":
                assert sum(beside.get(block, 0) for _, beside in lines.values()) == idle_ns


@pytest.mark.parametrize("path", each_trace())
def test_each_recorded_traces_rows_are_the_sum_of_their_steps(path: Path) -> None:
    check(load_profile(path, cache=False))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000))
def test_any_runs_rows_are_the_sum_of_their_steps(profile_of, seed: int) -> None:
    check(profile_of(random_trace(seed)))


def test_work_counts_in_the_step_of_its_launch_and_idle_time_where_it_falls(profile_of) -> None:
    builder = TraceBuilder().step(3, 100, 100).step(4, 200, 100)
    builder.line(FILE, 1, "f", 100, 50).kernel("a", 110, 120, 30)  # in step 3
    builder.line(FILE, 1, "f", 190, 20).kernel("a", 195, 220, 40)  # launched in step 3, runs in 4
    builder.line(FILE, 2, "f", 250, 40).kernel("b", 260, 270, 5)
    builder.line(FILE, 1, "f", 310, 10).kernel("a", 312, 320, 7)  # after the steps
    profile = profile_of(builder)
    check(profile)
    lines = {profile.lines[row].line if row >= 0 else 0: times for row, times in times_of(profile, "lines").items()}
    assert lines[1] == ({3: 70}, {3: 20 + 10, 4: 10})
    assert lines[2] == ({4: 5}, {4: 10 + 15})
    assert lines[0] == ({}, {3: 40, 4: 10 + 10})
    assert profile.lines[0].self_device_ns == 77
    assert times_of(profile, "kernels") == {0: ({3: 70}, {}), 1: ({4: 5}, {})}


def test_pythons_time_counts_in_the_step_of_its_line_and_is_divided_over_several(profile_of) -> None:
    builder = TraceBuilder().step(1, 0, 1000).step(2, 1000, 1000)
    builder.line(FILE, 9, "main", 0, 3000)
    builder.line(FILE, 1, "f", 100, 300).op("aten::mm", 200, 50)
    builder.line(FILE, 1, "f", 1100, 700).op("aten::mm", 1200, 50)
    profile = profile_of(builder)
    check(profile)
    lines = {profile.lines[row].line if row >= 0 else 0: times for row, times in times_of(profile, "lines").items()}
    assert lines[1] == ({1: 50, 2: 50}, {1: 250, 2: 650})
    assert lines[9] == ({}, {1: 700, 2: 300})  # the last thousand is after the steps


@pytest.mark.parametrize(
    ("steps", "length", "blocks"), [(BLOCKS, 1, BLOCKS), (BLOCKS * 2 - 4, 2, BLOCKS - 1), (200, 8, 26)]
)
def test_many_steps_are_kept_in_blocks(tmp_path: Path, steps: int, length: int, blocks: int) -> None:
    profile = profile_of_run(tmp_path, {1: [100] * steps})
    assert profile.steps_per_block == length
    ((device, _),) = (times for row, times in times_of(profile, "lines").items() if row >= 0)
    assert (len(device), sum(device.values())) == (blocks, 100 * steps)
    check(profile)


def test_ranks_are_summed_by_step_and_the_longer_blocks_win(tmp_path: Path) -> None:
    ranks = [profile_of_run(tmp_path, {1: [100] * 5, 2: [7] * 5}), profile_of_run(tmp_path, {1: [50] * 40})]
    for rank, profile in enumerate(ranks):
        profile.trace.ranks = [rank]
    merged = merge_profiles(ranks)
    assert merged.steps_per_block == 2
    check(merged)
    lines = {merged.lines[row].line: device for row, (device, _) in times_of(merged, "lines").items() if row >= 0}
    # Steps 3 to 7 of the one, 3 to 42 of the other.
    assert lines[1] == {1: 150, 2: 300, 3: 300, **dict.fromkeys(range(4, 21), 100), 21: 50}
    assert lines[2] == {1: 7, 2: 14, 3: 14}


def test_one_step_alone_has_its_own_times(profile_of) -> None:
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
    for at in (0, 100):
        builder.line(FILE, 1, "f", at, 90).kernel("a", at + 5, at + 10, 30 + at)
    profile = profile_of(builder, step=2)
    check(profile)
    assert times_of(profile, "kernels") == {0: ({2: 130}, {})}
