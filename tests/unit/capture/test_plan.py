"""What is done with windows as each step begins: p(repare), o(pen), s(tep), c(lose), r(eserve), a(side)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from deepscope.capture.options import RecordingOptions
from deepscope.capture.schedule import WHOLE_BLOCK, Move, Plan, Schedule, StepAction
from deepscope.errors import OptionError

NONE, WARMUP, RECORD = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD
SAVE = ProfilerAction.RECORD_AND_SAVE
ACTIONS = {NONE: StepAction.PASS, WARMUP: StepAction.WARM_UP, RECORD: StepAction.RECORD, SAVE: StepAction.RECORD_LAST}
LETTERS = {
    Move.PREPARE: "p",
    Move.OPEN: "o",
    Move.OPEN_IN_RESERVE: "r",
    Move.STEP: "s",
    Move.SET_ASIDE: "a",
    Move.CLOSE: "c",
}


def plan_of(total: int | None = None, **options: Any) -> Plan:
    return Plan(Schedule.of(RecordingOptions(**options), total))


def walk(plan: Plan, steps: int) -> str:
    words = []
    for _ in range(steps):
        plan = plan.next()
        words.append("".join(LETTERS[move] for move in plan.moves) or "-")
    return " ".join(words)


def moved(plan: Plan, steps: int) -> Plan:
    for _ in range(steps):
        plan = plan.next()
    return plan


def listed(actions: Sequence[ProfilerAction]) -> Callable[[int], ProfilerAction]:
    return lambda step: actions[step] if step < len(actions) else NONE


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "- p o s c -"),
        ({"wait": 0, "warmup": 0, "active": 2, "repeat": 0}, "o s co s co s"),
        ({"wait": 0, "warmup": 0, "active": 1, "repeat": 3}, "o co co c - -"),
        ({"wait": 0, "warmup": 1, "active": 1, "repeat": 2}, "p o cp o c -"),
        ({"wait": 0, "warmup": 2, "active": 1}, "p - o c - -"),
        ({"wait": 1, "warmup": 0, "active": 1, "repeat": 2, "skip_first": 1}, "- - o c o c"),
    ],
)
def test_a_schedule_that_fits_its_run(options: dict[str, int], moves: str) -> None:
    assert walk(plan_of(6, **options), 6) == moves


@pytest.mark.parametrize(("total", "moves"), [(1, "o"), (2, "p o"), (3, "- p o"), (4, "- p o s"), (6, "- p o s s c")])
def test_a_run_of_known_length_is_recorded_however_short(total: int, moves: str) -> None:
    assert walk(plan_of(total), total) == moves


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "r ap o s c -"),
        ({"wait": 2, "warmup": 0, "active": 1}, "r a o c - -"),
        ({"wait": 0, "warmup": 1, "active": 1}, "r ao c - - -"),
        ({"wait": 0, "warmup": 2, "active": 1}, "r ap o c - -"),
        ({"wait": 0, "warmup": 0, "active": 2}, "o s c - - -"),
    ],
)
def test_a_run_of_unknown_length_has_its_first_step_in_reserve(options: dict[str, int], moves: str) -> None:
    assert walk(plan_of(**options), 6) == moves


@pytest.mark.parametrize(
    ("actions", "moves"),
    [
        ([NONE, WARMUP, RECORD, SAVE], "- p o s c -"),
        ([WARMUP, NONE, WARMUP, RECORD, NONE], "p - p o c -"),
        ([RECORD, WARMUP, RECORD, RECORD, RECORD, SAVE], "o cp o s s s"),
        ([SAVE, SAVE, NONE, RECORD, SAVE, SAVE], "o co c o s co"),
    ],
)
def test_a_schedule_of_the_callers_own(actions: list[ProfilerAction], moves: str) -> None:
    assert walk(plan_of(6, schedule=listed(actions)), 6) == moves


def test_a_schedule_of_the_callers_own_that_never_opens_gives_way_to_the_last_step() -> None:
    schedule = torch.profiler.schedule(wait=5, warmup=1, active=1)
    assert walk(plan_of(3, schedule=schedule), 3) == "- - o"
    assert walk(plan_of(schedule=schedule), 3) == "r a -"


def test_a_schedule_that_answers_with_a_word_is_refused() -> None:
    with pytest.raises(OptionError, match="answered 'record' for step 0"):
        plan_of(schedule=lambda _step: "record").next()


def test_a_whole_block_is_one_window() -> None:
    assert walk(Plan(WHOLE_BLOCK), 4) == "o s s s"
    assert not moved(Plan(WHOLE_BLOCK), 4).is_over


def test_beside_another_window_nothing_is_recorded_in_reserve() -> None:
    assert plan_of().next().moves == (Move.OPEN_IN_RESERVE,)
    assert plan_of().next(may_reserve=False).moves == ()


NUMBERS = st.fixed_dictionaries(
    {
        "skip_first": st.integers(0, 3),
        "wait": st.integers(0, 3),
        "warmup": st.integers(0, 2),
        "active": st.integers(1, 3),
        "repeat": st.integers(0, 3),
    }
)


@given(NUMBERS)
def test_the_numbers_mean_what_they_mean_to_torch(numbers: dict[str, int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of warmup=0
        action = torch.profiler.schedule(**numbers)
    schedule = Schedule.of(RecordingOptions(**numbers))
    assert [schedule.action(step) for step in range(40)] == [ACTIONS[action(step)] for step in range(40)]


@given(NUMBERS, st.integers(0, 30))
def test_a_plan_is_over_when_nothing_is_to_come(numbers: dict[str, int], steps: int) -> None:
    plan = moved(plan_of(100, **numbers), steps)
    comes = any(plan.schedule.action(step) is not StepAction.PASS for step in range(steps, steps + 40))
    assert plan.is_over is not comes


@given(st.lists(st.sampled_from([*ACTIONS]), min_size=1, max_size=12), st.booleans())
def test_whatever_the_schedule_a_window_opens_once_and_closes_once(
    actions: list[ProfilerAction], is_known: bool
) -> None:
    plan = plan_of(len(actions) if is_known else None, schedule=listed(actions))
    opened = ""
    for letter in walk(plan, len(actions) + 1):
        if letter in "or":
            assert not opened
            opened = letter
        elif letter in "sca":
            assert opened == ("r" if letter == "a" else "o")
            opened = opened if letter == "s" else ""
    assert not opened


@given(NUMBERS, st.integers(1, 30))
def test_a_window_cut_short_is_all_of_its_cycle(numbers: dict[str, int], steps: int) -> None:
    plan = moved(plan_of(100, **numbers), steps)
    rest = plan.cut_short()
    assert rest.cut_short() == rest
    assert rest.next().before is StepAction.PASS
    if not plan.action.is_recorded:
        assert rest.step == plan.step
    else:
        length = numbers["wait"] + numbers["warmup"] + numbers["active"]
        assert 0 <= rest.step - plan.step < numbers["active"]
        assert (rest.step + 1 - numbers["skip_first"]) % length == 0


def test_a_plan_goes_on_where_it_was_cut_short() -> None:
    plan = plan_of(9, wait=1, warmup=1, active=3, repeat=2)
    assert walk(moved(plan, 3).cut_short(), 7) == "- p o s s c -"
    assert walk(moved(plan, 2).cut_short(), 4) == "o s s c"


def test_a_plan_that_is_cut_before_a_step_begins_with_it_or_with_the_next_cycle() -> None:
    plan = plan_of(20, wait=1, warmup=1, active=3, repeat=2)
    for steps, moves in ((1, "- p o s s c"), (2, "p o s s c"), (3, "o s s c")):
        assert walk(moved(plan, steps).cut_before(is_cycle_over=False), 6).startswith(moves)
    assert walk(moved(plan, 4).cut_before(is_cycle_over=True), 6) == "- p o s s c"
