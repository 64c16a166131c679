"""What else used the machine, from made folders of the kernel's, and from real processes that compete for a core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from deepscope.capture.machine_use import MachineWatch
from deepscope.records import TraceInfo
from deepscope.report.counters import busy_words
from deepscope.trace.format.header import MachineUse

SPIN = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(flush=True)\nwhile True: pass"


def machine(root: Path, *, busy: int, stolen: int, throttled: int, ran: int, waited: int) -> None:
    """Two cores, a quota of one; times in ticks of 10 ms, but those of the thread in nanoseconds."""
    (root / "proc/self/task/7").mkdir(parents=True, exist_ok=True)
    (root / "sys/fs/cgroup/mine").mkdir(parents=True, exist_ok=True)
    cores = "".join(f"cpu{which} {busy} 0 0 0 0 0 0 {stolen}\n" for which in ("", 0, 1))
    (root / "proc/stat").write_text(f"{cores}intr 1\n".replace("cpu ", "cpu  "))
    (root / "proc/self/cgroup").write_text("0::/mine\n")
    (root / "proc/self/task/7/schedstat").write_text(f"{ran} {waited} 3\n")
    (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpu\n")
    (root / "sys/fs/cgroup/mine/cpu.max").write_text("100000 100000\n")
    (root / "sys/fs/cgroup/mine/cpu.stat").write_text(f"usage_usec 1\nnr_periods 40\nnr_throttled {throttled}\n")


def test_what_was_used_is_the_difference_of_two_readings(tmp_path: Path) -> None:
    machine(tmp_path, busy=100, stolen=0, throttled=2, ran=1_000, waited=500)
    watch = MachineWatch(tmp_path)
    machine(tmp_path, busy=200, stolen=100, throttled=2, ran=4_000, waited=1_500)
    found = watch.end()
    assert (found.cores, found.quota_cores) == (2, 1.0)
    assert found.allowed_cores == len(os.sched_getaffinity(0))
    assert found.core_wait_ratio == 0.25
    assert found.throttled_ratio is None, "no period of the quota has passed"
    assert found.stolen_ratio is not None
    assert found.stolen_ratio > 0
    assert found.others_cores is not None
    assert found.others_cores > 0


def test_a_machine_that_tells_nothing_is_not_said_to_be_idle(tmp_path: Path) -> None:
    found = MachineWatch(tmp_path).end()
    assert (found.others_cores, found.core_wait_ratio, found.stolen_ratio, found.throttled_ratio) == (None,) * 4
    assert busy_words(info(found)) == ""


def info(use: MachineUse) -> TraceInfo:
    return TraceInfo(path="", recording={"machine": msgspec.to_builtins(use)})


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (MachineUse(cores=2, others_cores=0.1, core_wait_ratio=0.02, stolen_ratio=0.01, throttled_ratio=0.0), ""),
        (
            MachineUse(cores=2, others_cores=1.5, core_wait_ratio=0.31),
            (
                "the machine was busy: the program waited for a core 31% of the time that it could run; "
                "other processes used 1.5 of 2 cores"
            ),
        ),
        (
            MachineUse(cores=8, others_cores=0.0, core_wait_ratio=0.5),
            (
                "the machine was busy: the program waited for a core 50% of the time that it could run; "
                "it ran more threads than there are cores"
            ),
        ),
        (
            MachineUse(cores=8, quota_cores=2.5, throttled_ratio=0.4, stolen_ratio=0.1),
            (
                "the machine was busy: the container's quota of 2.5 cores was used up in 40% of its periods; "
                "its host gave 10% of its cores' time to other machines"
            ),
        ),
    ],
)
def test_it_is_said_who_had_the_cores(use: MachineUse, words: str) -> None:
    assert busy_words(info(use)) == words


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="/proc is Linux's")
def test_processes_that_compete_for_the_core_are_seen() -> None:
    allowed = os.sched_getaffinity(0)
    others = [subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()  # it spins
        os.sched_setaffinity(0, {min(allowed)})
        watch = MachineWatch()
        until = time.thread_time() + 0.2
        while time.thread_time() < until:
            pass
        found = watch.end()
    finally:
        os.sched_setaffinity(0, allowed)
        for other in others:
            other.kill()
            other.communicate()
    assert found.core_wait_ratio is not None
    assert found.core_wait_ratio > 0.3
    assert found.others_cores is not None
    assert found.others_cores > 0.3
    assert "other processes used" in busy_words(info(found))
