"""Runs compared from their traces on: statuses, intervals, the exit code's reasons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deepscope.comparison import TABLES, Comparison, compare
from deepscope.comparison.compare import judge
from deepscope.errors import IncomparableError
from deepscope.records import Profile
from deepscope.records.ranks import merge_profiles
from simulated_runs import noisy_times, profile_of_run
from trace_builder import TraceBuilder

TEXT = "".join(f"value_{number} = layer_{number}(batch)\n" for number in range(1, 13))
LINES = {number: 2e6 / number for number in range(1, 13)}


@pytest.fixture
def run(tmp_path: Path):
    """A run with these lines' times: `run(seed)`, `run(seed, lines, steps=1)`."""

    def make(seed: int, lines: dict[int, float] = LINES, *, text: str = TEXT, **noise: float) -> Profile:
        rng = np.random.default_rng(seed)
        return profile_of_run(tmp_path, noisy_times(lines, rng, **noise), text=text)  # type: ignore[arg-type]

    return make


def beyond(comparison: Comparison) -> list[int]:
    return [row.place.record.line if row.place else 0 for row in comparison.rows if not row.within_noise]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by", TABLES)
def test_two_runs_of_one_program_differ_by_noise(run, seed: int, by) -> None:
    comparison = compare([run(seed, run=0.05)], [run(seed + 100, run=0.05)], by=by)
    assert comparison.rows
    assert comparison.step.interval is not None
    assert sum(not row.within_noise for row in comparison.rows) <= (seed == 0)
    assert judge(comparison, 5).reasons == []


@pytest.mark.parametrize("seed", range(5))
def test_a_line_that_became_slower_is_the_one_that_is_called_so(run, seed: int) -> None:
    comparison = compare([run(seed)], [run(seed + 100, {**LINES, 3: LINES[3] * 1.8})])
    assert beyond(comparison) == [3]
    row = comparison.rows[0]
    assert row.interval is not None
    assert row.interval.low_ns <= 0.8 * LINES[3] <= row.interval.high_ns
    assert row.change_ns == row.after_ns - row.before_ns
    step, line = judge(comparison, 5).reasons
    assert step.startswith("a step is slower by ")
    assert line.startswith("train.py:3 is slower by ")
    assert judge(comparison, 200).reasons == []


def test_noise_stands_last_and_each_part_begins_with_the_largest_change(run) -> None:
    comparison = compare([run(1)], [run(2, {**LINES, 3: LINES[3] * 2, 7: LINES[7] / 3})])
    assert beyond(comparison) == [3, 7]
    changes = [abs(row.change_ns) for row in comparison.rows[2:]]
    assert changes == sorted(changes, reverse=True)


def test_what_is_new_gone_and_moved_is_said(run) -> None:
    rows = TEXT.splitlines(keepends=True)
    new = "# a head\n" + "".join(rows[:4] + rows[5:]) + "fresh = other.thing(batch)\n"
    times = {number + (number < 5): ns for number, ns in LINES.items() if number != 5} | {13: 9e5}
    comparison = compare([run(1)], [run(2, times, text=new)])
    status = {(row.place.record.line, row.status) for row in comparison.rows if row.place is not None}
    assert status == {
        *((number + 1, "moved") for number in range(1, 5)), (5, "gone"), *((number, "same") for number in range(6, 13)),
        (13, "new"),
    }  # fmt: skip
    assert sorted(beyond(comparison)) == [5, 13]
    (gone,) = (row for row in comparison.rows if row.status == "gone")
    assert (gone.after_ns, gone.after) == (0, None)
    replaced = comparison.replaced
    assert (replaced.before_ns, replaced.after_ns) == (pytest.approx(LINES[5], rel=0.2), pytest.approx(9e5, rel=0.2))


def test_code_that_was_only_written_anew_fails_nothing_and_code_that_is_added_does(run) -> None:
    halves = {**{number: ns for number, ns in LINES.items() if number != 2}, 13: LINES[2] / 2, 14: LINES[2] / 2}
    text = TEXT.replace("value_2 = layer_2(batch)", "pass") + "half = first_half(batch)\nwhole = second(half)\n"
    assert judge(compare([run(1)], [run(2, halves, text=text)]), 10).reasons == []
    added = {**LINES, 13: 3e6}
    reasons = judge(compare([run(1)], [run(2, added, text=TEXT + "added = something.new(batch)\n")]), 5).reasons
    assert [reason.partition(",")[0] for reason in reasons][-1] == "what is new costs more than what is gone"


def test_one_step_tells_of_no_noise_and_nothing_is_called_significant(run) -> None:
    slower = {**LINES, 3: LINES[3] * 5}
    for steps in ((1, 1), (1, 5), (5, 1)):
        comparison = compare([run(1, steps=steps[0])], [run(2, slower, steps=steps[1])])
        assert all(row.interval is None and row.within_noise for row in comparison.rows)
        assert judge(comparison, 5).reasons == []
        assert not comparison.has_intervals
    repeated = compare([run(seed, steps=1) for seed in range(3)], [run(seed, slower, steps=1) for seed in range(5, 8)])
    assert beyond(repeated) == [3]


def test_a_trace_without_steps_is_compared_as_a_whole(tmp_path: Path) -> None:
    profiles = []
    for duration in (100, 150):
        from deepscope.analysis.build import build_profile
        from deepscope.trace.read import read_trace

        builder = TraceBuilder().line("/job/a.py", 1, "f", 0, 500).kernel("k", 10, 20, duration)
        profiles.append(build_profile(read_trace(builder.write(tmp_path / "a.json"))))
    (row,) = (row for row in compare(profiles[:1], profiles[1:], number="self").rows if row.place)
    assert (row.before_ns, row.after_ns, row.interval, row.within_noise) == (100, 150, None, True)


def test_repeats_tell_how_runs_differ(run) -> None:
    def side(first: int, factor: float = 1.0) -> list[Profile]:
        lines = {**LINES, 4: LINES[4] * factor}
        return [run(seed, lines, run=0.08) for seed in range(first, first + 4)]

    same = compare(side(0), side(50))
    assert beyond(same) == []
    assert 0.02 < same.run_noise < 0.2
    assert beyond(compare(side(0), side(50, 2.5))) == [4]
    assert beyond(compare(side(0), side(50, 2.5)[:1])) == [4]


def test_the_order_of_the_repeats_changes_nothing(run) -> None:
    runs = [run(seed, run=0.05) for seed in range(5)]
    one = compare(runs[:3], runs[3:])
    other = compare(runs[2::-1], runs[:2:-1])
    assert [(row.name, round(row.change_ns, 3)) for row in one.rows] == [
        (row.name, round(row.change_ns, 3)) for row in other.rows
    ]


def test_the_changes_of_the_lines_sum_to_that_of_the_whole(run) -> None:
    before, after = run(1), run(2, {**LINES, 3: LINES[3] * 2})
    for number, whole in (("self", "device_ns"), ("cost", None)):
        rows = compare([before], [after], number=number).rows
        sums = [
            sum(getattr(step, whole) if whole else step.device_ns + step.idle_ns for step in one.steps) / len(one.steps)
            for one in (before, after)
        ]
        assert sum(row.before_ns for row in rows) == pytest.approx(sums[0])
        assert sum(row.change_ns for row in rows) == pytest.approx(sums[1] - sums[0])


def test_ranks_are_compared_by_their_mean(run) -> None:
    ranks = [run(seed) for seed in (1, 2)]
    for rank, profile in enumerate(ranks):
        profile.trace.ranks = [rank]
    merged = merge_profiles(ranks)
    rows = {row.place.record.line: row for row in compare([merged], [merged]).rows if row.place}
    for line in LINES:
        own = [next(one for one in profile.lines if one.line == line).cost_ns / 5 for profile in ranks]
        assert rows[line].before_ns == pytest.approx(sum(own) / 2)


def test_a_cpu_and_a_device_cannot_be_compared(run, tmp_path: Path) -> None:
    from deepscope.analysis.build import build_profile
    from deepscope.trace.read import read_trace

    cpu = build_profile(read_trace(TraceBuilder().step(1, 0, 100).op("aten::mm", 5, 20).write(tmp_path / "cpu.json")))
    for sides in (([run(1)], [cpu]), ([cpu], [run(1)]), ([run(1), cpu], [run(2)])):
        with pytest.raises(IncomparableError, match=r"cpu\.json: has no device work"):
            compare(*sides)
