"""`deepscope demo`, as a user runs it: the planted mistakes stand among the costliest lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepscope.cli.demo import copy_program

pytest.importorskip("lightning")

ENVIRONMENT = os.environ | {"COLUMNS": "160"}


def demo(folder: Path) -> dict[str, Any]:
    return reported(folder, "-m", "deepscope", "demo", "--steps", "8", "--folder", ".")


def reported(folder: Path, *program: str) -> dict[str, Any]:
    """What is reported of a run in this folder."""
    run = [sys.executable, *program]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    report = [sys.executable, "-m", "deepscope", "report", str(folder), "--format", "json"]
    answer: dict[str, Any] = json.loads(subprocess.run(report, capture_output=True, text=True, check=True).stdout)
    return answer


def planted(answer: dict[str, Any], words: str) -> dict[str, Any]:
    return next(line for line in answer["lines"] if words in (line["text"] or ""))


def test_both_planted_mistakes_are_named_with_a_remedy(tmp_path: Path) -> None:
    answer = demo(tmp_path)
    item = planted(answer, "mistake 2")
    found = {finding["line"] for finding in answer["findings"]}
    assert {planted(answer, "mistake 1")["line"], item["line"]} <= found
    assert item["operators"] == 2 * item["calls"] == 2 * 3 * 32 * 64, "eq and item, for each letter of three batches"


def test_with_worker_processes_the_slow_collate_stands_at_its_line_as_a_workers_time(tmp_path: Path) -> None:
    answer = reported(tmp_path, str(copy_program(tmp_path)), "--steps", "8", "--workers", "2")
    collate = planted(answer, "mistake 1")
    assert collate["worker_cpu_ns"] > 0
    assert collate["worker_ns"] == max(line["worker_ns"] for line in answer["lines"]) >= collate["worker_cpu_ns"]
    assert collate["self_cpu_ns"] == 0, "the trainer's own process never ran it"


def test_a_copy_that_the_user_changed_is_run_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "train_transformer.py"
    program.write_text("raise SystemExit('mine')")
    run = [sys.executable, "-m", "deepscope", "demo", "--folder", str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mine" in done.stderr
    assert done.stderr.strip().splitlines()[-1].endswith("its own messages stand above")
    assert program.read_text() == "raise SystemExit('mine')"
