"""The account of a whole run, by a clock that the test moves: each nanosecond is in one part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deepscope.capture.whole_run import run_timer
from deepscope.capture.whole_run.run_timer import MOST_EPOCHS, RunTimer, write_account
from deepscope.trace.format.run_account import (
    CompiledAccount,
    RunAccount,
    account_path,
    decoded_account,
    encoded_account,
)

Sleep = Callable[[int], None]


def make_step(timer: RunTimer, sleep: Sleep, data_ns: int, step_ns: int) -> None:
    timer.begin("data")
    sleep(data_ns)
    timer.end("data")
    timer.begin("steps")
    sleep(step_ns)
    timer.end("steps")


def times(account: RunAccount) -> dict[str, int]:
    assert sum(part.time_ns for part in account.parts) == account.duration_ns
    return {part.name: part.time_ns for part in account.parts if part.time_ns}


def test_steps_waits_and_what_is_between_them_sum_to_the_run(sleep: Sleep) -> None:
    timer = RunTimer()
    sleep(100)
    for _ in range(2):
        make_step(timer, sleep, 3, 10)
        sleep(1)
    account = timer.account()
    assert times(account) == {"start": 100, "data": 6, "steps": 20, "rest": 2}
    assert account.first_step_ns == 13
    assert account.duration_ns == 128


def test_an_evaluation_begins_as_the_step_before_it_ends_and_has_what_it_logs_but_not_what_it_saves(
    sleep: Sleep,
) -> None:
    timer = RunTimer()
    make_step(timer, sleep, 0, 10)
    sleep(5)  # its loader starts workers
    timer.give_to_recording(2)
    timer.begin("evaluation")
    timer.begin("evaluation")
    sleep(20)
    timer.begin("logging")
    sleep(3)
    timer.end("logging")
    timer.begin("checkpoint")
    sleep(7)
    timer.end("checkpoint")
    timer.end("evaluation")
    sleep(1)
    account = timer.account()
    assert times(account) == {"steps": 10, "evaluation": 26, "recording": 2, "checkpoint": 7, "rest": 1}
    assert {part.name: part.times for part in account.parts if part.times} == {
        "steps": 1, "data": 1, "evaluation": 1, "checkpoint": 1,
    }  # fmt: skip


def test_what_is_logged_and_saved_within_a_step_is_no_part_of_its_length(sleep: Sleep) -> None:
    timer = RunTimer()
    timer.begin("data")
    sleep(1)
    timer.end("data")
    for part in ("logging", "checkpoint"):
        timer.begin(part)
        sleep(50)
        timer.end(part)
    sleep(4)
    timer.give_to_recording(3)
    timer.end("steps")
    account = timer.account()
    assert times(account) == {"data": 1, "steps": 1, "recording": 3, "logging": 50, "checkpoint": 50}
    assert account.first_step_ns == 2


def test_all_before_the_first_step_is_the_start(sleep: Sleep) -> None:
    timer = RunTimer()
    timer.begin("evaluation")
    sleep(10)
    timer.begin("logging")
    sleep(1)
    timer.end("logging")
    timer.end("evaluation")
    assert times(timer.account()) == {"start": 11}


def test_long_steps_are_told_from_usual_ones_and_the_first_is_neither(sleep: Sleep) -> None:
    timer = RunTimer()
    make_step(timer, sleep, 0, 90_000)
    for number in range(40):
        make_step(timer, sleep, 100, 39_900 if number % 8 == 0 else 900)
    make_step(timer, sleep, 0, 5_000)  # little of the time of long steps
    account = timer.account()
    assert account.usual_step_ns == 1_000
    assert (account.long_steps, account.long_steps_ns) == (5, 200_000)
    assert decoded_account(encoded_account(account)) == account


def test_steps_beyond_those_that_are_noted_count_as_being_like_them(
    sleep: Sleep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_timer, "_MOST_STEPS", 40)
    timer = RunTimer()
    make_step(timer, sleep, 0, 1_000)
    for number in range(80):
        make_step(timer, sleep, 0, 40_000 if number % 8 == 0 else 1_000)
    assert (timer.account().long_steps, timer.account().long_steps_ns) == (10, 400_000)


def test_steps_that_wait_for_a_core_are_not_long(sleep: Sleep, monkeypatch: pytest.MonkeyPatch) -> None:
    def long_steps(waits: bool) -> int:
        waited = [0]
        monkeypatch.setattr(run_timer, "core_wait_ns", lambda: waited[0])
        timer = RunTimer()
        for number in range(40):
            waited[0] += 39_000_000 if waits and number % 8 == 1 else 0
            make_step(timer, sleep, 0, 40_000_000 if number % 8 == 1 else 1_000_000)
        return timer.account().long_steps

    assert (long_steps(False), long_steps(True)) == (5, 0)


def test_long_steps_that_come_now_and_then_are_the_machines(sleep: Sleep) -> None:
    timer = RunTimer()
    for number in range(60):
        make_step(timer, sleep, 0, 40_000 if number in {3, 4, 11, 25, 40, 57} else 1_000)
    assert (timer.account().long_steps, timer.account().long_steps_ns) == (0, 0)


def test_an_epoch_that_an_exception_cuts_short_leaves_nothing_to_the_next_one(sleep: Sleep) -> None:
    timer = RunTimer()
    make_step(timer, sleep, 1, 10)
    timer.begin("data")
    timer.begin("logging")  # which never ends
    sleep(5)
    timer.end_epoch()
    make_step(timer, sleep, 2, 20)
    account = timer.account()
    assert times(account) == {"data": 3, "steps": 30, "logging": 5}
    assert [(one.number, one.steps, one.steps_ns, one.data_ns) for one in account.epochs] == [
        (0, 1, 10, 1),
        (1, 1, 20, 2),
    ]


def test_many_epochs_share_rows_and_lose_nothing(sleep: Sleep) -> None:
    timer = RunTimer()
    for _ in range(3 * MOST_EPOCHS):
        make_step(timer, sleep, 1, 2)
        timer.end_epoch()
    account = timer.account()
    assert len(account.epochs) <= MOST_EPOCHS
    assert sum(one.epochs for one in account.epochs) == sum(one.steps for one in account.epochs) == 3 * MOST_EPOCHS
    ends = [0, *(one.number + one.epochs for one in account.epochs)]
    assert [one.number for one in account.epochs] == ends[:-1]
    assert sum(one.steps_ns for one in account.epochs) == 6 * MOST_EPOCHS


def test_a_part_that_nobody_told_of_is_missing(sleep: Sleep) -> None:
    timer = RunTimer()
    make_step(timer, sleep, 1, 2)
    assert "logging" not in {part.name for part in timer.account(unknown=["logging"]).parts}


def test_the_account_lies_beside_the_traces_that_are_there(sleep: Sleep, tmp_path: Path) -> None:
    timer = RunTimer()
    make_step(timer, sleep, 1, 2)
    account = timer.account()
    there, removed = tmp_path / "a.pt.trace.json.gz", tmp_path / "b.pt.trace.json.gz"
    there.touch()
    write_account(account, [there, removed])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.deepscope-run", there.name]
    assert decoded_account(account_path(there).read_bytes()) == account


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"steps","time_ns":2', b'"steps","time_ns":3'),
        lambda content: content.replace(b'"format":1', b'"format":2'),
        lambda content: b"\xff" + content,
        lambda content: content.replace(b'"time_ns":5', b'"time_ns":-5'),
    ],
)
def test_a_damaged_account_is_none(sleep: Sleep, damage: Callable[[bytes], bytes]) -> None:
    timer = RunTimer()
    make_step(timer, sleep, 1, 2)
    content = encoded_account(timer.account(compiled=[CompiledAccount("net.py", 6, "forward", 2, 5, "k == 1.0")]))
    assert decoded_account(content) is not None
    assert damage(content) != content
    assert decoded_account(damage(content)) is None
