"""Jobs that run while tests ask them: real processes, with folders of their own."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from warm_python import run_command

__all__ = ["LOOP", "Running", "attach", "environment", "jobs", "running", "runtime_folder", "wait_for"]

LOOP = """\
import os, sys, time
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def loss_of(batch):
    hidden = net(batch)
    return hidden.square().mean()

def step():
    loss = loss_of(torch.randn(4, 8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

losses = []
while not os.path.exists("enough") and len(losses) < int(sys.argv[1]):
    losses.append(step().item())
    time.sleep(0.002)
print(losses)
"""
"""A training loop that ends when the file `enough` is there, or after so many steps, and prints its losses."""


@cache
def runtime_folder(folder: Path) -> Path:
    """Of a test's folder: for control servers, with a name that is short enough for a socket's."""
    short = tempfile.TemporaryDirectory(prefix=f"ds-{folder.name[:8]}-")
    atexit.register(short.cleanup)
    return Path(short.name)


def environment(folder: Path) -> dict[str, str]:
    """This process's, with control servers in a folder of the test's own."""
    runtime = runtime_folder(folder)
    kept = {name: value for name, value in os.environ.items() if name not in {"RANK", "WORLD_SIZE", "LOCAL_RANK"}}
    return kept | {
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_CACHE_HOME": str(runtime / "cache"),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }


class Running:
    """A process, what it writes, and how it ends."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.pid = process.pid

    def end(self) -> tuple[str, str]:
        """Tells a loop that it has done enough; returns what the process wrote."""
        (self.folder / "enough").touch()
        return self.process.communicate(timeout=120)


@contextmanager
def running(folder: Path, *command: str, program: str | None = None) -> Iterator[Running]:
    """Runs a command of this Python in `folder`; it is killed where the test leaves it running."""
    if program is not None:
        (folder / "train.py").write_text(program)
    (folder / "pyproject.toml").touch()
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Running(process, folder)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
        process.communicate()


def attach(folder: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """`deepscope attach`, as a user of that folder runs it."""
    return run_command("attach", *arguments, folder=folder, timeout_s=timeout, **environment(folder))


def jobs(folder: Path) -> list[dict[str, Any]]:
    """What `deepscope attach` lists."""
    return json.loads(attach(folder, "--format", "json").stdout)


def wait_for(folder: Path, job: Running, *, ranks: int = 1, steps: int = 2) -> dict[str, Any]:
    """The job, once all of its ranks have made some steps."""
    until = time.monotonic() + 120
    while time.monotonic() < until and job.process.poll() is None:
        found: Sequence[dict[str, Any]] = jobs(folder)
        if found and len(found[0]["ranks"]) == ranks and found[0]["step"] >= steps:
            return found[0]
        time.sleep(0.1)  # the job's own start needs the processor, too
    out, err = job.process.communicate(timeout=5) if job.process.poll() is not None else ("", "still running")
    raise AssertionError(f"no such job came up: {out}{err}")
