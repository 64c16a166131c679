"""Several recorders: one window at a time, and one file for each rank."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
from deepscope.errors import NestedProfileError
from recorded import TESTS, load, step_names, steps
from warm_python import run_warm


def test_a_recorder_inside_another_is_refused(tmp_path: Path) -> None:
    outer = Recorder(RecordingSession(RecordingOptions(root=TESTS)), folder=tmp_path)
    inner = Recorder(RecordingSession(RecordingOptions(root=TESTS)), folder=tmp_path)
    outer.start()
    with pytest.raises(NestedProfileError, match="already open"):
        inner.start()
    outer.stop()
    outer.wait()
    inner.start()
    inner.stop()
    inner.wait()
    assert len(inner.traces) == 1


def test_recorders_of_one_owner_take_turns(tmp_path: Path) -> None:
    owner = object()
    options = RecordingOptions(root=TESTS, wait=0, warmup=0, active=2)
    outer = Recorder(
        RecordingSession(options, name="outer"), Plan(Schedule.of(options, 4)), folder=tmp_path, owner=owner
    )
    inner = Recorder(
        RecordingSession(options, name="inner"), Plan(Schedule.of(options, 4)), folder=tmp_path, owner=owner
    )
    outer.start()
    inner.start()
    for _ in range(4):
        torch.ones(3).sum()
        outer.step()
        inner.step()
    outer.stop()
    inner.stop()
    outer.wait()
    inner.wait()
    assert step_names(outer.traces[0]) == steps(0, 1)
    assert step_names(inner.traces[0]) == steps(2, 3)


def test_a_rank_that_was_not_chosen_records_nothing(record: Callable[..., Recorder]) -> None:
    assert record(8, ranks=(3,)).traces == []


def test_two_ranks_write_a_file_each_and_share_the_run(tmp_path: Path) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(
        textwrap.dedent(f"""
        import os, sys, torch, torch.distributed as dist
        def main(rank):
            import deepscope
            dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=rank, world_size=2)
            with deepscope.profile("{tmp_path}/runs", filename="job", root="{tmp_path}"):
                dist.all_reduce(torch.ones(3))
            dist.destroy_process_group()
        for rank in (0, 1):
            if not os.fork():
                main(rank)
                sys.exit()
        print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in (0, 1)])
        """)
    )
    done = run_warm(script=program)
    assert done.stdout == "[0, 0]\n", done.stderr
    paths = sorted((tmp_path / "runs").iterdir())
    own = [load(path)["deepscope"] for path in paths]
    assert [path.name.split(".")[:2] for path in paths] == [["job", "rank0"], ["job", "rank1"]]
    assert [(each["rank"], each["world_size"]) for each in own] == [(0, 2), (1, 2)]
    assert own[0]["run_id"] == own[1]["run_id"]
    assert load(paths[0])["distributedInfo"]["backend"] == "gloo"


def record_steps(on_step: deepscope.callback, count: int) -> None:
    for _ in range(count):
        torch.ones(3).sum()
        on_step()


def test_a_callback_whose_schedule_has_ended_makes_room_for_the_next(tmp_path: Path) -> None:
    """Neither is closed: a loop that takes a callback has no place for that."""
    callbacks = [deepscope.callback(tmp_path / str(number), root=TESTS) for number in (0, 1)]
    for on_step in callbacks:
        record_steps(on_step, 8)
    with deepscope.profile(tmp_path / "block", root=TESTS):
        torch.ones(3).sum()
    for on_step in callbacks:
        on_step.close()
        assert step_names(on_step.recording.traces[0]) == steps(2, 3, 4)


def test_a_profile_whose_schedule_has_ended_makes_room_for_the_next(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS, wait=0, warmup=0, active=1) as outer:
        torch.ones(3).sum()
        outer.step()
        with deepscope.profile(tmp_path / "inner", root=TESTS) as inner:
            torch.ones(3).sum()
    assert (len(outer.traces), len(inner.traces)) == (1, 1)


def test_a_new_callback_ends_one_that_is_open_and_keeps_what_it_has(tmp_path: Path) -> None:
    first, second = (deepscope.callback(tmp_path / name, root=TESTS, active=9) for name in ("first", "second"))
    record_steps(first, 5)
    with pytest.warns(RecordingWarning, match="ends here, where another one begins"):
        record_steps(second, 5)
    first.close()
    second.close()
    (trace,) = first.recording.traces
    assert step_names(trace) == steps(2, 3, 4, 5)
    assert load(trace)["deepscope"]["complete"] is False
    assert len(second.recording.traces) == 1


def test_a_callback_inside_a_recording_costs_a_warning_and_not_the_loop(tmp_path: Path) -> None:
    on_step = deepscope.callback(tmp_path / "callback", root=TESTS)
    with deepscope.profile(tmp_path / "block", root=TESTS) as block:
        with pytest.warns(RecordingWarning, match="callback records nothing: .* already open"):
            record_steps(on_step, 5)
    assert (len(block.traces), on_step.recording.traces) == (1, [])


def interrupted_cell(recording: deepscope.Recording) -> None:
    def cell() -> None:
        recording.start()
        torch.ones(3).sum()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cell()


def test_a_cell_that_was_interrupted_can_be_run_again(tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=TESTS)
    interrupted_cell(recording)
    recording.start()
    torch.ones(3).sum()
    recording.stop()
    assert [load(path)["deepscope"]["complete"] for path in recording.traces] == [False, True]


def test_a_recording_that_an_interrupted_cell_left_open_gives_way_to_another(tmp_path: Path) -> None:
    left = deepscope.profile(tmp_path / "left", root=TESTS)
    interrupted_cell(left)
    with pytest.warns(RecordingWarning, match="ends here"), deepscope.profile(tmp_path / "next", root=TESTS) as after:
        torch.ones(3).sum()
    left.stop()
    assert (len(left.traces), len(after.traces)) == (1, 1)


def test_a_recording_that_a_function_started_goes_on_in_the_loop_of_another(tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=TESTS, wait=1)

    def begin() -> None:
        recording.start()

    begin()
    for _ in recording.iterate(range(9)):
        torch.ones(3).sum()
    recording.stop()
    assert [step_names(path) for path in recording.traces] == [steps(2, 3, 4)]
