"""Numbers that cannot be true: what has them is left out and counted, and the rest still sums up."""

from __future__ import annotations

import random

import numpy as np
import pytest

from deepscope.analysis.array_ops.intervals import Extent, union
from deepscope.store import load_profile
from deepscope.trace.arrays import summable
from deepscope.trace.read import possible_times
from trace_builder import TraceBuilder

YEAR_NS = 365 * 86_400 * 10**9


def _loaded(tmp_path, builder):
    return load_profile(builder.write(tmp_path / "t.json"), cache=False)


def _good():
    return (
        TraceBuilder()
        .line("/home/me/t.py", 3, "main", 0, 9_000)
        .op("aten::mm", 10, 500)
        .kernel("gemm", 20, 600, 300)
        .kernel("gemm", 40, 2_000, 300)
        .memory(30, 512)
    )


_IMPOSSIBLE = [2**62 // 1000, 9_000_000_000_000_000, 1e300, "1e300", "soon"]


@pytest.mark.parametrize(
    ("field", "value"),
    [*(("ts", value) for value in [*_IMPOSSIBLE, -(2**62 // 1000) + 1]), *(("dur", value) for value in _IMPOSSIBLE)],
)
def test_an_event_whose_time_cannot_be_true_is_left_out_and_told(tmp_path, field, value):
    expected = _loaded(tmp_path, _good())
    builder = _good().kernel("odd", 50, 4_000, 300)
    builder.events[-1][field] = value
    del builder.events[-2]  # its launch
    profile = _loaded(tmp_path, builder)
    assert profile.trace.warnings == ["1 events were left out: their times or sizes cannot be true"]
    assert profile.totals == expected.totals
    assert profile.lines == expected.lines


def test_a_step_whose_number_no_integer_holds_is_no_step(tmp_path):
    builder = (
        _good().annotation("ProfilerStep#99999999999999999999", 0, 5_000).step(999_999_999_999_999_999, 5_000, 4_000)
    )
    assert [step.number for step in _loaded(tmp_path, builder).steps] == [999_999_999_999_999_999]


@pytest.mark.parametrize("size", [2**63, 2**62, -(2**63), 2**51])
def test_an_allocation_larger_than_any_memory_is_left_out_and_told(tmp_path, size):
    profile = _loaded(tmp_path, _good().memory(35, size).memory(36, 1024, address=5))
    assert profile.totals.peak_bytes == 512 + 1024
    assert len(profile.trace.warnings) == 1


def test_what_was_freed_twice_makes_no_peak_negative(tmp_path):
    builder = _good().memory(31, 512).memory(32, -512).memory(33, -512).memory(34, 64, address=9)
    profile = _loaded(tmp_path, builder)
    rows = [*profile.lines, profile.no_line]
    assert all(row.peak_bytes >= 0 for row in rows)
    assert sum(row.peak_bytes for row in rows) == profile.totals.peak_bytes > 0


def test_memory_without_any_event_is_a_profile(tmp_path):
    assert _loaded(tmp_path, TraceBuilder().memory(5, 64, device_type=0)).totals.device_ns == 0


def test_a_trace_of_an_hour_keeps_every_event():
    start = np.arange(100_000, dtype=np.int64) * 36_000_000
    assert possible_times(start, np.full(100_000, 3_600 * 10**9), np.zeros(100_000, np.int32)).all()


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_can_be_summed_up_in_64_bits(seed):
    dice = random.Random(seed)
    count = dice.choice([1, 2, 50, 3000])
    start = np.array([dice.choice([0, dice.randrange(-(2**62) + 1, 2**62), 10**18]) for _ in range(count)])
    duration = np.array([dice.choice([5, dice.randrange(2**62), YEAR_NS - 1]) for _ in range(count)])
    device = np.array([dice.randrange(500) for _ in range(count)])
    kept = possible_times(start, duration, device)
    starts, durations = start[kept].tolist(), duration[kept].tolist()
    assert sum(durations) < 2**63
    if starts:
        span = max(map(sum, zip(starts, durations, strict=True))) - min(starts)
        assert span * len(set(device[kept].tolist())) < 2**63


@pytest.mark.parametrize("values", [[2**60] * 9, [2**62, -(2**63), 3], [], [1, -1]])
def test_only_values_that_can_be_summed_up_are_kept(values):
    kept = np.array(values, np.int64)[summable(np.array(values, np.int64), 2**61)]
    assert sum(abs(value) for value in kept.tolist()) < 2**63
    assert {value for value in values if abs(value) < 100} <= set(kept.tolist())


def test_groups_whose_stretches_together_do_not_fit_are_summed_all_the_same():
    dice = random.Random(5)
    start = np.array([dice.randrange(YEAR_NS) for _ in range(900)])
    end = start + np.array([dice.choice([0, 7, YEAR_NS // 50]) for _ in range(900)])
    group = np.array([dice.randrange(400) for _ in range(900)])
    groups, lengths = Extent(None).grouped_union_ns(start, end, group)
    assert groups.tolist() == sorted(set(group.tolist()))
    assert lengths.tolist() == [union(start[group == one], end[group == one]).total_ns for one in groups]
