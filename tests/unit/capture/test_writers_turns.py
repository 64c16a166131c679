"""The processes that write the traces of a host take turns, and nobody waits for one that is gone."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deepscope.capture.counters.container import available_bytes
from deepscope.capture.saving import writer as writing
from deepscope.capture.saving.writer import memory_needed, turn
from machine_folders import GIB, write

pytestmark = pytest.mark.skipif(writing.fcntl is None, reason="no locks that end with their process on Windows")

WRITER = """
import json, sys, time
from pathlib import Path
from deepscope.capture.saving import writer
folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
rank, need, writers = map(int, sys.argv[3:])
writer.SETTLE_S = 0.0
with writer.turn(rank, need, folder=folder, writers=writers):
    begun = time.monotonic()
    print("begun", flush=True)
    time.sleep(seconds)
    print(json.dumps([begun, time.monotonic()]), flush=True)
"""


def writer(folder: Path, rank: int, *, need: int = 1, writers: int = 1, seconds: float = 0.2) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(folder), str(seconds), str(rank), str(need), str(writers)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def spans(processes: list[subprocess.Popen[str]]) -> list[tuple[float, float]]:
    return [tuple(json.loads(process.communicate(timeout=60)[0].splitlines()[-1])) for process in processes]


def all_waiting(folder: Path, ranks: list[int], **options: Any) -> list[subprocess.Popen[str]]:
    """Writers that all wait while another one has its turn, which is over when this returns."""
    with turn(0, 1, folder=folder, writers=1):
        processes = [writer(folder, rank, **options) for rank in ranks]
        while len(list(folder.glob("*-*"))) < len(ranks) + 1:
            assert all(process.poll() is None for process in processes)
            time.sleep(0.01)
    return processes


def test_one_after_the_other_in_the_order_of_ranks(tmp_path):
    found = spans(all_waiting(tmp_path, [3, 1, 2, 0]))
    in_order = [found[3], found[1], found[2], found[0]]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(in_order))
    assert [path.name for path in tmp_path.iterdir()] == ["gate"]


def test_as_many_at_once_as_may(tmp_path):
    found = sorted(spans(all_waiting(tmp_path, [0, 1, 2, 3], writers=2, seconds=1)))
    at_once = [sum(begin <= at < end for begin, end in found) for at, _ in found]
    assert max(at_once) == 2


def test_memory_lets_one_alone_write_whatever_it_takes(tmp_path):
    found = sorted(spans(all_waiting(tmp_path, [0, 1], need=1 << 60, writers=4)))
    assert found[0][1] <= found[1][0]


def test_nobody_waits_for_one_that_was_killed(tmp_path):
    killed = writer(tmp_path, 0, seconds=1000)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "begun\n"
    waiting = writer(tmp_path, 1)
    killed.kill()
    assert spans([waiting])
    killed.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["gate"]


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    hanging = writer(tmp_path, 0, seconds=1000)
    assert hanging.stdout is not None
    hanging.stdout.readline()
    monkeypatch.setattr(writing, "LONGEST_S", 0.2)
    with turn(1, 1, folder=tmp_path, writers=1):
        assert hanging.poll() is None
    hanging.kill()
    hanging.communicate()


def test_the_first_rank_of_a_host_alone_waits_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    with turn(0, memory_needed(10 << 20), folder=tmp_path):
        assert [path.read_bytes() for path in tmp_path.glob("0-*")] == [b"%d" % memory_needed(10 << 20)]


@pytest.mark.parametrize("damage", ["junk", "folder", "gone"])
def test_a_folder_with_other_things_in_it_keeps_nobody_from_writing(tmp_path, damage):
    folder = tmp_path / "turns"
    if damage != "gone":
        folder.mkdir()
    if damage == "junk":
        for name in ("0-", "-1", "x-y", f"0-{os.getpid() + 1}", "notes.txt"):
            (folder / name).write_bytes(b"\xff" * 100)
    if damage == "folder":
        (folder / "gate").mkdir()
    with turn(0, 1, folder=folder, writers=1):
        pass


def test_a_folder_of_somebody_elses_making_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(writing.tempfile, "gettempdir", lambda: str(tmp_path))
    own = writing._own_folder()
    assert own is not None
    own.chmod(0o777)
    assert writing._own_folder() is None
    own.rmdir()
    (tmp_path / "elsewhere").mkdir()
    own.symlink_to(tmp_path / "elsewhere")
    assert writing._own_folder() is None


def test_memory_is_what_the_host_and_every_group_around_the_process_leave(tmp_path: Path) -> None:
    def available(**limits: str) -> int:
        root = write(tmp_path / str(len(list(tmp_path.iterdir()))), {})
        files = {
            "proc/meminfo": "MemTotal: 16 kB\nMemAvailable: 9000000 kB\n",
            "proc/self/cgroup": "0::/outer/inner\n",
            "sys/fs/cgroup/cgroup.controllers": "memory\n",
            "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        }
        groups = {f"sys/fs/cgroup/{name.replace('__', '/').replace('_', '.')}": text for name, text in limits.items()}
        write(root, files | groups)
        return available_bytes(root)

    assert available() == 9_000_000 << 10
    outer = {"outer__memory_max": str(4 * GIB), "outer__memory_current": str(3 * GIB)}
    assert available(**outer) == GIB
    assert available(**outer, outer__memory_stat=f"anon 5\ninactive_file {GIB}\n") == 2 * GIB
    inner = {"outer__inner__memory_max": str(GIB // 2), "outer__inner__memory_current": "0"}
    assert available(**outer, **inner) == GIB // 2


@pytest.mark.parametrize(("rank", "comes_behind"), [(0, False), (1, True), (7, True)])
def test_profiles_are_made_behind_the_traces_of_all_ranks_but_the_firsts_that_may_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rank: int, comes_behind: bool
) -> None:
    drawn: list[int] = []

    def turn_of(rank: int, need_bytes: int) -> contextlib.AbstractContextManager[None]:
        drawn.append(rank)
        return contextlib.nullcontext()

    monkeypatch.setattr(writing, "turn", turn_of)
    writing._leave_profile(str(tmp_path / "no trace"), rank, 1)
    highest = 1 << 16
    assert [one > highest for one in drawn] == [comes_behind]
