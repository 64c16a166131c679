"""A process that was started without a word of DeepScope's, entered through `sys.remote_exec`.

Needs a Python 3.14: the one that runs the tests, the one that `DEEPSCOPE_PYTHON_3_14` names, or, where the job has no
torch, any on PATH.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope import load_profile
from on_demand_jobs import LOOP, attach, environment, jobs

PYTHON = os.environ.get("DEEPSCOPE_PYTHON_3_14") or (sys.executable if sys.version_info >= (3, 14) else "")
PLAIN = PYTHON or shutil.which("python3.14") or ""

needs_torch = pytest.mark.skipif(not PYTHON, reason="no Python 3.14 with torch: DEEPSCOPE_PYTHON_3_14 names one")
needs_python = pytest.mark.skipif(not PLAIN, reason="no Python 3.14: DEEPSCOPE_PYTHON_3_14 or PATH names one")
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
pytestmark = pytest.mark.skipif(
    YAMA.exists() and YAMA.read_text().strip() != "0" and os.geteuid() != 0,
    reason="only root may look into another process on this machine",
)

WITHOUT_TORCH = """
import os, time
print('up', flush=True)
while not os.path.exists('enough'):
    time.sleep(0.05)
print('as always')
"""

TOLD = LOOP.replace("losses = []", "losses = []\nprint('up', flush=True)")
RANKS = (
    TOLD.replace(
        "losses = []",
        """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
net = DistributedDataParallel(net)
losses = []
""",
    )
    .replace('while not os.path.exists("enough") and', "while")
    .replace(
        "time.sleep(0.002)",
        """time.sleep(0.03)
    flag = torch.tensor([float(os.path.exists("enough"))])
    dist.broadcast(flag, 0)
    if flag.item():
        break""",
    )
)


def plain(folder: Path) -> dict[str, str]:
    """The environment of a user whose job knows nothing of DeepScope."""
    return {name: value for name, value in environment(folder).items() if name != "PYTHONPATH"}


def start(folder: Path, *command: str, program: str = TOLD, **variables: str) -> subprocess.Popen[str]:
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(program)
    job = subprocess.Popen(
        [PYTHON or PLAIN, *command], cwd=folder, env=plain(folder) | variables, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert job.stdout is not None
    if not job.stdout.readline().startswith("up"):
        raise AssertionError(job.communicate()[1])
    return job


def end(folder: Path, job: subprocess.Popen[str]) -> tuple[str, str]:
    (folder / "enough").touch()
    try:
        return job.communicate(timeout=120)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, 9)


@pytest.mark.thorough
@needs_torch
def test_a_job_that_knows_nothing_is_recorded_and_its_losses_are_the_same(tmp_path):
    job = start(tmp_path, "train.py", "100000")
    done = attach(tmp_path, str(job.pid), "--steps", "3", "--format", "paths")
    again = attach(tmp_path, str(job.pid), "--steps", "2", "--format", "paths")
    out, err = end(tmp_path, job)
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr + err
    profile = load_profile(done.stdout.strip(), cache=False)
    assert len(profile.steps) == 3
    assert {line.line for line in profile.lines} >= {11, 12}
    assert job.returncode == 0
    (tmp_path / "enough").unlink()
    losses = out.count(",") + 1
    alone = subprocess.run(
        [PYTHON, "train.py", str(losses)], cwd=tmp_path, env=plain(tmp_path), capture_output=True, text=True, check=True
    )
    assert alone.stdout == f"up\n{out}"


@pytest.mark.thorough
@needs_torch
def test_all_ranks_are_entered_by_the_launchers_number_and_record_the_same_steps(tmp_path):
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    job = start(tmp_path, *torchrun, "train.py", "100000000", program=RANKS)
    done = attach(tmp_path, str(job.pid), "--steps", "3", "--format", "paths")
    listed = jobs(tmp_path)
    _, err = end(tmp_path, job)
    assert done.returncode == 0, done.stderr + err
    profiles = [load_profile(trace, cache=False) for trace in done.stdout.split()]
    assert [one.trace.ranks for one in profiles] == [[0], [1]]
    assert len({tuple(step.number for step in one.steps) for one in profiles}) == 1
    # The same step of both has the same broadcast, so they begin within one of each other.
    assert len(listed[0]["ranks"]) == 2


@needs_python
@pytest.mark.parametrize(
    ("variables", "command"),
    [({"PYTHON_DISABLE_REMOTE_DEBUG": "1"}, ()), ({}, ("-X", "disable-remote-debug"))],
)
def test_where_it_is_forbidden_the_message_says_so(tmp_path, variables, command):
    job = start(tmp_path, *command, "train.py", program=WITHOUT_TORCH, **variables)
    done = attach(tmp_path, str(job.pid))
    out, _ = end(tmp_path, job)
    assert done.returncode == 1
    assert "PYTHON_DISABLE_REMOTE_DEBUG" in done.stderr
    assert "deepscope run --on-demand" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (out, job.returncode) == ("as always\n", 0)


@needs_python
def test_a_process_without_torch_is_told_and_goes_on(tmp_path):
    job = start(tmp_path, "train.py", program=WITHOUT_TORCH)
    done = attach(tmp_path, str(job.pid))
    out, _ = end(tmp_path, job)
    assert (out, job.returncode) == ("as always\n", 0)
    assert done.returncode == 1
    assert "it has not imported torch" in done.stderr
