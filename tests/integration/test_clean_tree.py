"""What the documented commands leave behind fails no other: the tree stays clean for git and for ruff."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(8):
    net(torch.rand(2, 4)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def clone(repository: Path, tmp_path: Path) -> Path:
    """The files that git has, as they are in the working tree, in a repository of their own."""
    folder = tmp_path / "clone"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        source, target = repository / name, folder / name
        if source.exists() and not name.startswith(("docs/images", "vscode-extension", "tests/data")):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "All")
    return folder


def git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def deepscope(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deepscope", *arguments], cwd=folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_demo_and_run_leave_a_clone_clean(clone: Path, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    deepscope(clone, "demo", "--steps", "3")
    deepscope(clone, "run", str(program))
    deepscope(clone, "report", "deepscope_logs")
    assert (clone / "deepscope_demo" / "train_transformer.py").exists()
    assert list((clone / "deepscope_logs").glob("*.pt.trace.json*"))
    assert git(clone, "status", "--porcelain") == ""
    subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "--quiet", "."], cwd=clone, check=True)
