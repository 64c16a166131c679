"""Real loops: what the time of the whole run went to, as far as `iterate` tells."""

import time
from pathlib import Path

import deepscope
from deepscope.records import WholeRun
from deepscope.report.run_verdict import run_verdict

DATA_S, STEP_S, BETWEEN_S = 0.001, 0.002, 0.5


def batches(count: int):
    for number in range(count):
        time.sleep(DATA_S)
        yield number


def times(run: WholeRun) -> dict[str, int]:
    assert sum(part.time_ns for part in run.parts) == run.duration_ns
    return {part.name: part.time_ns for part in run.parts}


def test_a_loop_that_spends_its_time_between_epochs_says_so(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, wait=1, warmup=1, active=2) as prof:
        for _ in range(3):
            for _ in prof.iterate(batches(5)):
                time.sleep(STEP_S)
            time.sleep(BETWEEN_S)
    profile = prof.profile
    assert profile is not None
    run = profile.whole_run
    assert run is not None
    assert set(times(run)) == {"steps", "data", "recording", "start", "rest"}
    assert times(run)["data"] >= 15 * DATA_S * 1e9
    assert times(run)["steps"] >= 15 * STEP_S * 1e9
    assert times(run)["rest"] >= 3 * BETWEEN_S * 1e9
    assert [(one.number, one.steps) for one in run.epochs] == [(0, 5), (1, 5), (2, 5)]
    said = run_verdict(profile)
    assert said.cause == "outside steps"
    assert "of the run lies outside its steps. " in said.sentence


def test_a_loop_that_only_tells_where_steps_end_has_no_account(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, wait=1, warmup=1, active=2) as prof:
        for _ in batches(5):
            prof.step()
    assert prof.profile is not None
    assert prof.profile.whole_run is None


def test_a_loop_that_is_left_is_accounted_for_without_the_step_that_it_was_left_in(tmp_path: Path) -> None:
    prof = deepscope.profile(tmp_path, wait=1, warmup=1, active=2)
    for number in prof.iterate(batches(10)):
        if number == 6:
            break
    assert prof.profile is not None
    run = prof.profile.whole_run
    assert run is not None
    assert times(run)
    assert [one.steps for one in run.epochs] == [6]
