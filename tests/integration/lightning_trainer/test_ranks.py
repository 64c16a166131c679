"""Two ranks on the CPU, launched in both of Lightning's ways."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_runs import Recorded, recorded

PROGRAM = Path(__file__).parents[2] / "targets" / "lightning_run.py"


def run(folder: Path, **options: object) -> tuple[list[Recorded], str]:
    arguments = {"devices": 2, "max_epochs": 1, "limit_train_batches": 6} | options
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(arguments)], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return recorded(folder), done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("strategy", "profiler"), [("ddp", {"profiler": "deep"}), ("ddp_spawn", {"deep": {"ranks": [0, 1], "active": 3}})]
)
def test_each_rank_writes_one_file_of_the_same_run(strategy: str, profiler: dict[str, object], tmp_path: Path) -> None:
    found, stderr = run(tmp_path, strategy=strategy, **profiler)
    assert sorted(one.rank for one in found) == ["rank0", "rank1"]
    assert sorted(one.deepscope["rank"] for one in found) == [0, 1]
    assert {one.deepscope["world_size"] for one in found} == {2}
    assert len({one.deepscope["run_id"] for one in found}) == 1
    assert all(one.within_steps(".training_step") == [1, 1, 1] for one in found)
    assert stderr.count("trace saved to") == 1
