"""Real loops: what the time of the whole run went to, as far as `iterate` tells."""

import linecache
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

import deepscope
from deepscope.capture import recording
from deepscope.capture.notices import RecordingWarning
from deepscope.records import WholeRun
from deepscope.report.run_verdict import run_verdict
from deepscope.trace.format.run_account import decoded_account

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
    assert "of the run lies outside its steps, most of it at " in said.sentence
    assert linecache.getline(said.file, said.line).strip() == "time.sleep(BETWEEN_S)"


def test_a_loop_that_only_tells_where_steps_end_knows_nothing_of_its_wait_for_data(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, wait=1, warmup=1, active=2) as prof:
        for _ in batches(5):
            prof.step()
    assert prof.profile is not None
    run = prof.profile.whole_run
    assert run is not None
    assert set(times(run)) == {"steps", "recording", "start", "rest"}
    assert times(run)["steps"] >= 5 * DATA_S * 1e9
    assert run.steps == 5


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


def test_validation_and_checkpoints_in_a_loop_of_iterate_are_told(tmp_path: Path) -> None:
    loader = DataLoader(torch.ones(6, 2), batch_size=1)
    before = DataLoader.__iter__, torch.save
    prof = deepscope.profile(tmp_path, wait=1, warmup=1, active=2)
    with prof:
        for _ in range(2):
            for number, _ in enumerate(prof.iterate(loader)):
                if number == 3:
                    with torch.no_grad():
                        for _ in loader:
                            time.sleep(STEP_S)
                    torch.save(1, tmp_path / "checkpoint.pt")
    assert (DataLoader.__iter__, torch.save) == before
    assert prof.profile is not None
    run = prof.profile.whole_run
    assert run is not None
    assert times(run)["evaluation"] >= 2 * 6 * STEP_S * 1e9
    assert {part.name: part.times for part in run.parts if part.times} == {
        "steps": 12, "data": 12, "evaluation": 2, "checkpoint": 2,
    }  # fmt: skip
    assert [one.steps for one in run.epochs] == [6, 6]


def test_a_recording_that_is_left_open_is_accounted_for_as_the_next_one_begins(tmp_path: Path) -> None:
    def leave_open() -> deepscope.Recording:
        prof = deepscope.profile(tmp_path / "first", wait=0, warmup=0, active=9).start()
        for _ in DataLoader(torch.ones(4, 2), batch_size=1):
            prof.step()
        return prof

    before = DataLoader.__iter__, torch.save
    first = leave_open()
    with pytest.warns(RecordingWarning, match="nobody had stopped"):
        second = deepscope.profile(tmp_path / "second").start()
    second.stop()
    assert (DataLoader.__iter__, torch.save) == before
    assert first.profile is not None
    run = first.profile.whole_run
    assert run is not None
    assert run.steps == 4


def test_what_is_known_of_a_long_run_is_written_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_ACCOUNT_INTERVAL_NS", 0)
    with deepscope.profile(tmp_path, wait=0, warmup=0, active=2) as prof:
        for _ in range(4):
            prof.step()
        prof.wait()
        found = []
        for _ in range(2):
            prof.step()
            (path,) = tmp_path.glob("*.deepscope-run")
            account = decoded_account(path.read_bytes())
            assert account is not None
            found.append(next(part.times for part in account.parts if part.name == "steps"))
    assert found == [5, 6]


def test_a_rank_that_does_not_record_is_not_watched(tmp_path: Path) -> None:
    before = DataLoader.__iter__, torch.save
    with deepscope.profile(tmp_path, ranks=[1]) as prof:
        assert (DataLoader.__iter__, torch.save) == before
        for _ in prof.iterate(DataLoader(torch.ones(3, 2), batch_size=1)):
            pass
    assert not list(tmp_path.iterdir())
