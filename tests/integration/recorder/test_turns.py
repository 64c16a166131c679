"""Several recorders: one window at a time, and one file for each rank."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.errors import NestedProfileError
from recorded import TESTS, load, step_names, steps


def test_a_recorder_inside_another_is_refused(tmp_path: Path) -> None:
    outer = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)
    inner = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)
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
    outer = Recorder(options, folder=tmp_path, name="outer", owner=owner, total_steps=4)
    inner = Recorder(options, folder=tmp_path, name="inner", owner=owner, total_steps=4)
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
        import sys, torch, torch.distributed as dist, deepscope
        def main(rank):
            dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=rank, world_size=2)
            with deepscope.profile("{tmp_path}/runs", name="job", root="{tmp_path}"):
                dist.all_reduce(torch.ones(3))
            dist.destroy_process_group()
        if __name__ == "__main__":
            main(int(sys.argv[1]))
        """)
    )
    ranks = [subprocess.Popen([sys.executable, str(program), str(rank)]) for rank in (0, 1)]
    assert [rank.wait(timeout=100) for rank in ranks] == [0, 0]
    paths = sorted((tmp_path / "runs").iterdir())
    own = [load(path)["deepscope"] for path in paths]
    assert [path.name.split(".")[:2] for path in paths] == [["job", "rank0"], ["job", "rank1"]]
    assert [(each["rank"], each["world_size"]) for each in own] == [(0, 2), (1, 2)]
    assert own[0]["run_id"] == own[1]["run_id"]
    assert load(paths[0])["distributedInfo"]["backend"] == "gloo"
