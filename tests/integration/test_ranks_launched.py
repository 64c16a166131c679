"""Several ranks under each launcher: who records, who prints, and with which exit code all ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope.trace.read import read_trace
from rank_runs import PROGRAMS, RANKS, rank_traces, torchrun

pytestmark = pytest.mark.thorough

PLAIN = str(PROGRAMS / "plain.py")
LIGHTNING = PROGRAMS.parent / "lightning_run.py"


def run(folder: Path, *options: str, program: tuple[str, ...] = (PLAIN,)) -> subprocess.CompletedProcess[str]:
    return torchrun(["-m", "deepscope", "run", "--folder", str(folder / "traces"), *options, *program], folder)


def recorded_ranks(folder: Path) -> list[int]:
    headers = [read_trace(path).header for path in rank_traces(folder)]
    assert len({header.run_id for header in headers}) <= 1
    return sorted(header.rank for header in headers)


def test_all_ranks_of_a_plain_program_are_recorded_and_one_table_shows_them_all(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert recorded_ranks(tmp_path / "traces") == [0, 1, 2, 3]
    assert re.findall(r"^device .*", done.stdout, re.MULTILINE) == [
        line for line in done.stdout.splitlines() if line.endswith("ranks 0-3 of 4, summed up")
    ]
    assert done.stdout.count("ranks 0-3 of 4, summed up") == 1
    assert done.stderr.count("trace saved to") == 1


def test_ranks_that_do_not_record_pay_nothing_and_print_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--rank", "1,3")
    assert done.returncode == 0, done.stderr
    assert recorded_ranks(tmp_path / "traces") == [1, 3]
    told = dict(re.findall(r"^rank (\d) (.*)$", done.stdout, re.MULTILINE))
    free = "{'level': None, 'recorder': False}"
    assert {rank for rank, words in told.items() if words == free} == {"0", "2"}
    assert done.stdout.count("ranks 1, 3 of 4, summed up") == 1
    assert done.stderr.count("trace saved to") == 1


def test_one_rank_of_each_host(tmp_path: Path) -> None:
    done = run(tmp_path, "--rank", "hosts")
    assert done.returncode == 0, done.stderr
    assert recorded_ranks(tmp_path / "traces") == [0]
    assert done.stdout.count("rank 0 of 4") == 1


def test_ranks_that_are_not_there_are_told_once(tmp_path: Path) -> None:
    done = run(tmp_path, "--rank", "8")
    assert done.returncode == 0, done.stderr
    assert recorded_ranks(tmp_path) == []
    assert done.stderr.count("nothing is recorded") == 1


def test_the_programs_exit_code_is_torchruns(tmp_path: Path) -> None:
    done = run(tmp_path, "-q", program=(PLAIN, "7"))
    assert done.returncode != 0
    assert "exitcode  : 7" in done.stderr
    assert set(recorded_ranks(tmp_path / "traces")) == {0, 1, 2, 3}


def test_ranks_that_only_their_group_knows_are_chosen_by_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "spawned.py"), str(tmp_path)],
        env={key: value for key, value in os.environ.items() if not key.startswith("DEEPSCOPE_RUN")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert recorded_ranks(tmp_path) == [1, 2]
    assert done.stderr.count("trace saved to") == 1


@pytest.mark.parametrize("options", [{"profiler": "deep"}, {"deep": {"ranks": "1-2"}}])
def test_lightning_under_torchrun(tmp_path: Path, options: dict[str, object]) -> None:
    pytest.importorskip("lightning", reason="Lightning is not installed")
    arguments = {"devices": RANKS, "strategy": "ddp", "max_epochs": 1, "limit_train_batches": 6} | options
    done = torchrun([str(LIGHTNING), json.dumps(arguments)], tmp_path)
    assert done.returncode == 0, done.stderr
    folders = {path.parent for path in tmp_path.rglob("*.pt.trace.json.gz")}
    assert len(folders) == 1
    assert recorded_ranks(folders.pop()) == ([0, 1, 2, 3] if "profiler" in options else [1, 2])
    assert done.stderr.count("trace saved to") == 1
