"""`deepscope attach`: a job that runs is recorded when somebody asks, and is otherwise as it would be."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepscope import load_profile
from on_demand_jobs import LOOP, attach, environment, jobs, running, wait_for
from warm_python import run_warm

RUN = ("-m", "deepscope", "run", "--on-demand", "train.py")


def plain(folder: Path, steps: int) -> str:
    """The losses of a run without DeepScope."""
    done = run_warm(script=folder / "train.py", arguments=(str(steps),), folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def steps_of(trace: str) -> list[int]:
    return [step.number for step in load_profile(trace, cache=False).steps]


def test_a_job_is_recorded_as_often_as_somebody_asks_and_its_losses_are_the_same(tmp_path):
    with running(tmp_path, *RUN, "100000", program=LOOP) as job:
        wait_for(tmp_path, job)
        by_pid = attach(tmp_path, str(job.pid), "--steps", "3", "--format", "paths")
        by_name = attach(tmp_path, "train.py", "--steps", "2", "--format", "paths", "--topics", "default,memory")
        by_folder = attach(tmp_path, "deepscope_logs")
        out, err = job.end()
    assert (by_pid.returncode, by_name.returncode, by_folder.returncode) == (0, 0, 0), by_pid.stderr + by_name.stderr
    first, second = by_pid.stdout.split(), by_name.stdout.split()
    assert len(first) == len(second) == 1
    assert len(steps_of(first[0])) == 3
    assert len(steps_of(second[0])) == 2
    assert "train.py:11" in by_folder.stdout
    assert "5 steps" in by_folder.stdout
    assert load_profile(second[0], cache=False).memory is not None
    assert err.count("trace saved") == 3
    losses = out.count(",") + 1
    (tmp_path / "enough").unlink()
    assert out == plain(tmp_path, losses)


def test_what_is_not_there_is_told_in_a_line(tmp_path):
    nothing = attach(tmp_path)
    assert nothing.returncode == 0
    assert "deepscope run --on-demand" in nothing.stdout
    other = attach(tmp_path, "nothing.py")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr.startswith("deepscope: nothing.py: ")


@pytest.mark.thorough
def test_jobs_are_listed_as_json(tmp_path):
    nothing = attach(tmp_path, "--format", "json")
    assert (nothing.returncode, json.loads(nothing.stdout), nothing.stderr) == (0, [], "")
    with running(tmp_path, *RUN, "100000", program=LOOP) as job:
        waiting = wait_for(tmp_path, job)
        job.end()
    assert waiting["pids"] == [job.pid]
    assert Path(waiting["program"]).name == "train.py"
    assert Path(waiting["folder"]) == tmp_path / "deepscope_logs"
    assert (waiting["ranks"], waiting["world_size"], waiting["state"]) == ([0], 1, "idle")
    assert waiting["step"] >= 2
    assert waiting["step_ns"] > 0


@pytest.mark.parametrize("arguments", [("--steps", "2", "--time", "3"), ("--time", "soon"), ("--steps", "0")])
def test_wrong_use_is_told(tmp_path, arguments):
    assert attach(tmp_path, "1", *arguments).returncode == 2


TRAINER = """\
import os, time
import torch
import lightning.pytorch as pl
from deepscope.lightning import DeepProfiler

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
    def training_step(self, batch, index):
        time.sleep(0.002)
        return self.layer(batch).square().mean()
    def validation_step(self, batch, index):
        self.layer(batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)
    def on_train_batch_end(self, *args):
        self.trainer.should_stop = os.path.exists("enough")

def loader(count):
    return torch.utils.data.DataLoader(torch.ones(4 * count, 8), batch_size=4)

quiet = dict(accelerator="cpu", enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
profiler = DeepProfiler("here", on_demand=True)
trainer = pl.Trainer(profiler=profiler, max_epochs=-1, min_epochs=0, logger=False, **quiet)
trainer.fit(Net(), loader(2000), loader(3))  # the end of an epoch ends a window, and is rarely met
print([path.name for path in profiler.traces])
"""


@pytest.mark.thorough
def test_lightnings_own_steps_are_recorded(tmp_path):
    with running(tmp_path, "train.py", program=TRAINER) as job:
        wait_for(tmp_path, job)
        done = attach(tmp_path, str(job.pid), "--steps", "3", "--format", "paths")
        again = attach(tmp_path, "here", "--steps", "2", "--format", "paths")
        out, err = job.end()
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr + err
    profile = load_profile(done.stdout.strip(), cache=False)
    assert profile.trace.stage == "fit"
    assert 1 <= len(profile.steps) <= 3  # validation ends a window
    assert any(line.line == 11 for line in profile.lines)
    assert Path(done.stdout.strip()).name in out


def test_requests_may_come_as_files(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.deepscope]\ncontrol = "files"')
    with running(tmp_path, *RUN[:-1], "train.py", "100000", program=LOOP) as job:
        control_folder = tmp_path / "deepscope_logs" / ".deepscope-control"
        while job.process.poll() is None and not list(control_folder.glob("*.json")):
            time.sleep(0.05)
        assert oct(control_folder.stat().st_mode & 0o777) == "0o700"
        done = attach(tmp_path, "deepscope_logs", "--steps", "3", "--format", "paths")
        again = attach(tmp_path, "deepscope_logs", "--time", "0.3", "--format", "paths")
        job.end()
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr
    assert len(steps_of(done.stdout.strip())) == 3
    assert len(steps_of(again.stdout.strip())) > 3
    assert not control_folder.exists()


RANKS = LOOP.replace(
    "losses = []",
    """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
net = DistributedDataParallel(net)
losses = []
""",
).replace('while not os.path.exists("enough") and', "while").replace(
    "print(losses)",
    "print(len(losses), losses[-1])",
).replace("time.sleep(0.002)", """flag = torch.tensor([float(os.path.exists("enough"))])
    dist.broadcast(flag, 0)
    if flag.item():
        break""") + """
import gc
del net
gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
dist.destroy_process_group()
"""  # fmt: skip


@pytest.mark.thorough
def test_all_ranks_record_the_same_steps(tmp_path):
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4")
    with running(tmp_path, *torchrun, *RUN, "100000000", program=RANKS) as job:
        found = wait_for(tmp_path, job, ranks=4)
        assert found["world_size"] == 4
        whole = [attach(tmp_path, str(job.pid), "--steps", "3", "--format", "paths") for _ in range(3)]
        timed = attach(tmp_path, str(found["pids"][2]), "--time", "0.3", "--format", "paths")
        one = attach(tmp_path, "train.py", "--rank", "1", "--steps", "2", "--format", "paths")
        table = attach(tmp_path, "train.py", "--steps", "2")
        out, err = job.end()
    for done in [*whole, timed]:
        assert done.returncode == 0, done.stderr
        traces = done.stdout.split()
        assert len(traces) == 4
        numbers = [steps_of(trace) for trace in traces]
        assert numbers[0] == numbers[1] == numbers[2] == numbers[3]
        profiles = [load_profile(trace, cache=False) for trace in traces]
        assert sorted(rank for profile in profiles for rank in profile.trace.ranks) == [0, 1, 2, 3]
    assert len(steps_of(whole[0].stdout.split()[0])) == 3
    assert len(one.stdout.split()) == 1
    assert "ranks 0-3 of 4" in table.stdout, table.stderr
    assert job.process.returncode == 0, out + err


FORKS = (
    LOOP.replace(
        "losses = []",
        """
import contextlib
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20
    def __getitem__(self, index):
        held = []
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # that of the folder itself
                held.append(os.readlink(f"/proc/self/fd/{number}"))
        inodes = {line.split()[6] for line in open("/proc/net/unix") if os.environ["XDG_RUNTIME_DIR"] in line}
        return float(any(f"socket:[{inode}]" in held for inode in inodes))

rows = iter(torch.utils.data.DataLoader(Rows(), batch_size=1, num_workers=2))
held = []
losses = []
""",
    )
    .replace("time.sleep(0.002)", "held.append(next(rows).item())")
    .replace("print(losses)", "print(sum(held))")
)


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="no list of sockets on Windows")
def test_workers_that_are_forked_do_not_hold_the_door(tmp_path):
    with running(tmp_path, *RUN, "100000", program=FORKS) as job:
        wait_for(tmp_path, job)
        done = attach(tmp_path, str(job.pid), "--steps", "2", "--format", "paths")
        children = subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True).stdout.split()
        by_child = attach(tmp_path, children[0], "--format", "paths")
        out, err = job.end()
    assert done.returncode == 0, done.stderr
    assert by_child.returncode == 1, by_child.stdout
    assert out == "0.0\n", err


WITHOUT_STEPS = """\
import os, sys, time, torch
torch.set_num_threads(1)
def work():
    return (torch.ones(8, 8) @ torch.ones(8, 8)).sum().item()
total, runs = 0.0, 0
while not os.path.exists("enough") and runs < int(sys.argv[1]):
    total, runs = total + work(), runs + 1
    time.sleep(0.001)
print(total == 512.0 * runs)
"""


@pytest.mark.thorough
def test_a_program_without_steps_is_recorded_by_time(tmp_path):
    with running(tmp_path, *RUN, "100000000", program=WITHOUT_STEPS) as job:
        wait_for(tmp_path, job, steps=0)
        done = attach(tmp_path, str(job.pid), "--time", "500ms", "--format", "paths")
        again = attach(tmp_path, str(job.pid), "--time", "0.2", "--format", "paths")
        out, _ = job.end()
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr
    profile = load_profile(done.stdout.strip(), cache=False)
    assert any(line.line == 4 for line in profile.lines)
    assert out == "True\n"


@pytest.mark.thorough
def test_whoever_leaves_ends_the_window_and_the_job_goes_on(tmp_path):
    with running(tmp_path, *RUN, "100000", program=LOOP) as job:
        wait_for(tmp_path, job)
        asking = subprocess.Popen(
            [sys.executable, "-m", "deepscope", "attach", str(job.pid), "--time", "1000"],
            cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while jobs(tmp_path)[0]["state"] != "recording":
            pass
        busy = attach(tmp_path, str(job.pid))
        asking.send_signal(2)
        _, said = asking.communicate(timeout=60)
        while jobs(tmp_path)[0]["state"] != "saved":
            pass
        after = attach(tmp_path, str(job.pid), "--steps", "2", "--format", "paths")
        job.end()
    assert asking.returncode == 130
    assert "the job goes on" in said
    assert busy.returncode == 1
    assert "another `deepscope attach`" in busy.stderr
    assert after.returncode == 0, after.stderr
    assert len(list((tmp_path / "deepscope_logs").glob("*.gz"))) == 2


OWN = LOOP.replace(
    "losses = []",
    "import deepscope\nprof = deepscope.profile('own').start()\nlosses = []",
).replace("print(losses)", "prof.stop()\nprint(prof.traces)")


@pytest.mark.thorough
def test_a_program_that_records_itself_is_left_alone(tmp_path):
    with running(tmp_path, *RUN, "100000", program=OWN) as job:
        wait_for(tmp_path, job)
        refused = attach(tmp_path, str(job.pid), "--steps", "2")
        out, err = job.end()
    assert refused.returncode == 1
    assert "a DeepScope recording is already open" in refused.stderr
    assert "own/" in out, err


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    with running(tmp_path, *RUN, "100000", program=LOOP) as job:
        wait_for(tmp_path, job)
        (tmp_path / "deepscope_logs").write_text("a file")
        refused = attach(tmp_path, str(job.pid), "--steps", "2")
        out, _ = job.end()
    assert refused.returncode == 1
    assert "deepscope_logs" in refused.stderr
    assert out.startswith("[")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("999999999", "there is no process 999999999"),
        ("self", "no job that waits"),
        ("²", "no job that waits"),
        ("{shell}", "is not Python"),
    ],
)
def test_a_process_that_cannot_be_recorded_is_told(tmp_path, target, told):
    with subprocess.Popen(["sleep", "60"]) as shell:
        done = attach(tmp_path, target.format(shell=shell.pid))
        shell.kill()
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 has no need of preparation")
def test_an_unprepared_process_of_an_older_python_is_told_what_to_do(tmp_path):
    (tmp_path / "wait.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    with running(tmp_path, "wait.py") as job:
        assert job.process.stdout is not None
        job.process.stdout.readline()
        done = attach(tmp_path, str(job.pid))
    assert done.returncode == 1
    assert "deepscope run --on-demand" in done.stderr


@pytest.mark.thorough
def test_a_window_by_time_begins_and_ends_between_steps(tmp_path):
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "pyproject.toml").touch()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "deepscope", "run", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True)

    done = run("--time", "0.4", "--after", "500ms", "-q", "train.py", "400")
    assert done.returncode == 0, done.stderr
    profile = load_profile(tmp_path / "deepscope_logs", cache=False)
    assert profile.steps[0].number > 5
    assert 0.2e9 < sum(step.duration_ns for step in profile.steps) < 5e9
    assert (
        run("--time", "2s", "--wait", "3", "train.py", "1").stderr.count(
            "--wait counts steps, and --time records by the clock"
        )
        == 1
    )
