"""Programs of several ranks, run for real: gloo on the CPU, started by torchrun."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

__all__ = ["PROGRAMS", "RANKS", "rank_run", "rank_traces", "started", "torchrun"]

PROGRAMS = Path(__file__).resolve().parent / "targets" / "ranks"
RANKS = 4


@cache
def rank_run(program: str, *arguments: str) -> Path:
    """The folder with the traces of a program in `targets/ranks`, such as `ddp`; one recording a session."""
    folder = Path(tempfile.mkdtemp(prefix=f"deepscope-{program}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    done = torchrun([str(PROGRAMS / f"{program}.py"), str(folder), *arguments], folder)
    assert done.returncode == 0, done.stderr
    return folder


def rank_traces(folder: Path, rank: int | None = None) -> list[Path]:
    """The traces in a folder, of all ranks or of one, oldest first."""
    which = "" if rank is None else f".rank{rank}"
    return sorted(folder.glob(f"*{which}.*.pt.trace.json.gz"), key=lambda path: path.name.split(".")[-5])


def torchrun(
    arguments: Sequence[str],
    folder: Path,
    *,
    ranks: int = RANKS,
    launcher: Sequence[str] = ("--standalone",),
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 100,
) -> subprocess.CompletedProcess[str]:
    """`torchrun … arguments` in `folder`, with all that it prints. Nothing of it is left when this returns."""
    process = started(arguments, folder, ranks=ranks, launcher=launcher, environment=environment)
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def started(
    arguments: Sequence[str],
    folder: Path,
    *,
    ranks: int = RANKS,
    launcher: Sequence[str] = ("--standalone",),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """The same while it runs; a process group of its own, for the caller to end."""
    others = ("DEEPSCOPE_RUN", "TORCHELASTIC_", "INDUCTOR_PROVENANCE")  # a recorder of this process may have set it
    own = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *launcher, f"--nproc-per-node={ranks}", *arguments],
        cwd=folder,
        env={**own, "OMP_NUM_THREADS": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
