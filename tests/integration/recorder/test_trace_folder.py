"""The folder that traces are written to."""

import subprocess
from pathlib import Path

import pytest
import torch

import deepscope


def record(folder: Path) -> Path:
    with deepscope.profile(folder) as recording:
        torch.ones(3).sum()
    (trace,) = recording.traces
    return trace


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_version_control_sees_nothing_of_a_deepscope_logs_that_the_recorder_made(project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    record(Path("deepscope_logs"))
    record(Path("experiments/deepscope_logs/first"))
    status = subprocess.run(["git", "status", "--porcelain"], check=True, capture_output=True, text=True)
    assert status.stdout == ""


def test_a_folder_of_the_users_own_gets_no_gitignore(project: Path) -> None:
    (project / "deepscope_logs").mkdir()
    traces = [record(Path("deepscope_logs")), record(Path("runs/first"))]
    assert {path for path in project.rglob("*") if path.is_file()} == {trace.absolute() for trace in traces}
