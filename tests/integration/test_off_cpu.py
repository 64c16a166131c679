"""What the recorder says of waiting holds against a program that knows how long it waits, and where."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import deepscope
from deepscope.records import Line, Profile

TARGETS = Path(__file__).parents[1] / "targets"
MS = 1_000_000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a fine CPU clock of the thread")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    sys.path.insert(0, str(TARGETS))
    try:
        waiting = importlib.import_module("waiting")
    finally:
        sys.path.remove(str(TARGETS))
    with deepscope.profile(tmp_path_factory.mktemp("runs"), root=TARGETS) as prof:
        waiting.run()
    assert prof.profile is not None
    return prof.profile


def marked(profile: Profile, mark: str) -> Line:
    (line,) = [line for line in profile.lines if (line.text or "").endswith(f"# {mark}")]
    return line


@pytest.mark.parametrize(("mark", "least_ms"), [("sleep", 50), ("lock", 50), ("raises", 20), ("generator", 40)])
def test_a_line_that_waits_is_blocked(profile: Profile, mark: str, least_ms: int) -> None:
    line = marked(profile, mark)
    # The thread does some work to fall asleep and to wake up again.
    assert line.blocked_ns >= 0.97 * least_ms * MS
    assert line.python_cpu_ns < 10 * MS
    assert line.loader_wait_ns == 0


def test_a_line_that_computes_is_on_the_cpu_however_busy_the_machine(profile: Profile) -> None:
    line = marked(profile, "busy")
    assert line.python_cpu_ns > 30 * MS
    assert line.blocked_ns < line.python_cpu_ns / 4


def test_a_loop_over_a_loader_with_workers_waits_for_them(profile: Profile) -> None:
    line = marked(profile, "loader")
    assert line.loader_wait_ns > 60 * MS
    assert line.loader_wait_ns > 2 * line.blocked_ns


def test_the_parts_sum_to_pythons_own_time(profile: Profile) -> None:
    for line in profile.lines:
        parts = line.python_cpu_ns, line.loader_wait_ns, line.blocked_ns, line.core_wait_ns
        assert sum(parts) == line.python_ns


BUSY = """
import atexit, os, subprocess, threading, time, sys
import torch, deepscope

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
torch.set_num_threads(1)
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]  # on the same core
atexit.register(lambda: [other.kill() for other in others])

def spin():
    until = time.thread_time() + 0.2
    while time.thread_time() < until: sum(range(50_000)); time.sleep(0)  # spins

# What samples counters would wait for the same core, with Python's lock: there the line is blocked indeed.
with deepscope.profile(sys.argv[1], root=os.path.dirname(os.path.abspath(__file__)), counters=False) as prof:
    before = time.perf_counter_ns(), time.thread_time_ns()
    spin()
    wall, cpu = time.perf_counter_ns() - before[0], time.thread_time_ns() - before[1]
    for other in others:
        other.kill()
        other.wait()
(line,) = [line for line in prof.profile.lines if (line.text or "").endswith("# spins")]
print(wall, cpu, line.python_ns, line.python_cpu_ns, line.blocked_ns, line.core_wait_ns, line.verdict)
"""


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="/proc is Linux's")
def test_a_spinning_line_whose_core_others_have_is_neither_blocked_nor_host_bound(tmp_path: Path) -> None:
    """The loop gives up its core voluntarily all the time, which told blocked from preempted before."""
    (tmp_path / "busy.py").write_text(BUSY)
    out = subprocess.run(
        [sys.executable, str(tmp_path / "busy.py"), str(tmp_path / "runs")], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    *numbers, verdict = out.stdout.split(maxsplit=6)
    wall, cpu, python, on_cpu, blocked, without_core = map(int, numbers)
    assert wall > 2 * cpu, "three others that spin left this thread a third of its core and more"
    assert blocked < 0.1 * python
    assert without_core > 0.4 * python
    assert on_cpu < 1.5 * cpu
    assert verdict.strip() == "waiting for a core"
