"""Recording of several ranks harms none of them, and what happens to one does not harm the others' traces."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from deepscope import load_profile
from deepscope.trace.read import read_trace
from rank_runs import PROGRAMS, RANKS, rank_traces, started, torchrun
from recorded import step_names, steps

pytestmark = pytest.mark.thorough


def headers(folder: Path) -> dict[int, bool]:
    """Rank → whether its trace was recorded to the window's end; each one is read to its own end."""
    found = [read_trace(path) for path in rank_traces(folder)]
    assert len({trace.header.run_id for trace in found}) == 1
    assert not any(trace.truncated for trace in found)
    return {trace.header.rank: trace.header.complete for trace in found}


def test_ranks_whose_traces_take_long_to_write_run_nobody_into_a_time_out(tmp_path: Path) -> None:
    done = torchrun([str(PROGRAMS / "slow_disk.py"), str(tmp_path), "beside"], tmp_path)
    assert (done.returncode, done.stdout.count("trained")) == (0, RANKS), done.stderr
    assert headers(tmp_path) == dict.fromkeys(range(RANKS), True)


@pytest.mark.parametrize("how", ["in-line", "to-the-end"])
def test_the_same_ranks_would_if_training_waited_for_their_traces(tmp_path: Path, how: str) -> None:
    done = torchrun([str(PROGRAMS / "slow_disk.py"), str(tmp_path), how], tmp_path)
    assert done.returncode != 0
    assert "Timed out waiting" in done.stderr or "timed out" in done.stderr.lower()


@pytest.mark.parametrize("how", ["kill", "exit", "exception"])
def test_a_rank_that_dies_in_its_window_leaves_the_others_whole(tmp_path: Path, how: str) -> None:
    done = torchrun([str(PROGRAMS / "dying.py"), str(tmp_path), "window", how], tmp_path)
    assert done.returncode != 0
    survivors = {0: False, 1: False, 3: False}
    assert headers(tmp_path) == (survivors | {2: False} if how == "exception" else survivors), done.stderr


@pytest.mark.parametrize(("when", "how"), [("end", "kill"), ("end", "exit"), ("saving", "kill"), ("saving", "exit")])
def test_a_rank_that_dies_as_its_window_ends_leaves_the_others_whole(tmp_path: Path, when: str, how: str) -> None:
    done = torchrun([str(PROGRAMS / "dying.py"), str(tmp_path), when, how], tmp_path)
    assert done.returncode != 0
    found = headers(tmp_path)
    assert set(found) == {0, 1, 3}, done.stderr
    profile = load_profile(tmp_path, cache=False)
    assert (profile.trace.ranks, profile.trace.world_size) == ([0, 1, 3], RANKS)


def test_an_error_while_a_trace_is_written_is_told_and_ends_nobody(tmp_path: Path) -> None:
    done = torchrun([str(PROGRAMS / "dying.py"), str(tmp_path), "saving", "exception"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the trace was not saved: planted;") == 1
    assert headers(tmp_path) == {0: True, 1: True, 3: True}


def test_ranks_that_torchrun_ends_save_their_windows_on_the_way_out(tmp_path: Path) -> None:
    done = torchrun([str(PROGRAMS / "dying.py"), str(tmp_path), "window", "kill", "alone"], tmp_path)
    assert done.returncode != 0
    assert headers(tmp_path) == {0: False, 1: False, 3: False}, done.stderr


def test_a_run_that_is_started_again_is_another_run(tmp_path: Path) -> None:
    launcher = ("--standalone", "--max-restarts", "1")
    # Else gloo looks for the ranks of the launch before, with or without DeepScope.
    environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    program = [str(PROGRAMS / "dying.py"), str(tmp_path), "window", "kill"]
    done = torchrun(program, tmp_path, launcher=launcher, environment=environment)
    assert done.returncode == 0, done.stderr
    runs: dict[str, list[int]] = {}
    for path in rank_traces(tmp_path):
        header = read_trace(path).header
        runs.setdefault(header.run_id, []).append(header.rank)
    assert sorted(map(sorted, runs.values())) == [[0, 1, 2, 3], [0, 1, 3]]
    profile = load_profile(tmp_path, cache=False)
    assert profile.trace.ranks == [0, 1, 2, 3]


def test_the_ranks_of_two_nodes_are_one_run_and_the_next_launch_under_the_same_id_is_another(tmp_path: Path) -> None:
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{free.getsockname()[1]}"
        launcher = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-id", "job", "--rdzv-endpoint", endpoint]
        nodes = [
            started(
                [str(PROGRAMS / "ddp.py"), str(tmp_path)],
                tmp_path,
                ranks=2,
                launcher=[*launcher, f"--rdzv-conf=is_host={int(node == 0)}"],
            )
            for node in range(2)
        ]
        for node in nodes:
            _, stderr = node.communicate(timeout=100)
            assert node.returncode == 0, stderr
    found = [read_trace(path).header for path in rank_traces(tmp_path)]
    runs = {header.run_id for header in found}
    assert len(runs) == 2
    for run in runs:
        assert sorted(header.rank for header in found if header.run_id == run) == [0, 1, 2, 3]
        assert run.startswith("job-0.")


def test_ranks_of_unequal_length_follow_one_schedule(tmp_path: Path) -> None:
    program = tmp_path / "unequal.py"
    program.write_text(UNEQUAL)
    done = torchrun([str(program), str(tmp_path / "traces")], tmp_path)
    assert done.returncode == 0, done.stderr
    found = {rank: step_names(*rank_traces(tmp_path / "traces", rank)) for rank in range(RANKS)}
    short_asked_first = dict.fromkeys(range(RANKS), steps(1))
    long_asked_first = {0: steps(0), 1: steps(2), 2: steps(2), 3: steps(2)}
    assert found in (short_asked_first, long_asked_first)


UNEQUAL = """
import sys
import torch
import torch.distributed as dist
import deepscope

dist.init_process_group("gloo")
lengths = [2, 3, 3, 3]
batches = [torch.ones(8)] * lengths[dist.get_rank()]
for batch in deepscope.profile(sys.argv[1], wait=2, warmup=0, active=1).iterate(batches):
    batch.sum()
dist.destroy_process_group()
"""


def test_ranks_of_a_job_that_is_ended_save_their_windows(tmp_path: Path) -> None:
    process = started([str(PROGRAMS / "dying.py"), str(tmp_path), "never", "kill", "alone"], tmp_path)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(RANKS)] == ["recording\n"] * RANKS
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode != 0
    assert headers(tmp_path) == dict.fromkeys(range(RANKS), False), stderr
