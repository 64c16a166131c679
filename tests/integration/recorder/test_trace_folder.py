"""The folder that traces are written to."""

import subprocess
from pathlib import Path

import pytest
import torch

import deepscope
from warm_python import run_warm


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


def test_a_program_that_goes_to_another_folder_has_its_traces_where_it_began(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "elsewhere").mkdir()
    with deepscope.profile("runs", wait=0, warmup=1, active=1, repeat=2) as recording:
        for step in range(5):
            torch.ones(3).sum()
            recording.step()
            if step == 1:
                monkeypatch.chdir("elsewhere")
    assert [trace.parent for trace in recording.traces] == [project / "runs"] * 2


def test_deepscope_run_has_traces_where_it_began_if_the_program_goes_to_another_folder(project: Path) -> None:
    (project / "elsewhere").mkdir()
    program = project / "program.py"
    program.write_text(
        "import os, torch\n"
        "os.chdir('elsewhere')\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        "for _ in range(3):\n"
        "    model(torch.ones(1, 2)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    done = run_warm(module="deepscope", arguments=("run", "-q", "--folder", "runs", str(program)), folder=project)
    assert done.returncode == 0, done.stderr
    (trace,) = project.rglob("*.gz")
    assert trace.parent == project / "runs"
