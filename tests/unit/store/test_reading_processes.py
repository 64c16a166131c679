"""Several traces read by processes of their own: the same profiles, progress and errors as without."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deepscope.records import WHOLE, Profile
from deepscope.store import load_profile, several_traces
from deepscope.store.files import TraceFile, single_file
from deepscope.store.several_traces import answers_of_processes, workers_for
from deepscope.store.single_trace import ReadRequest, read_profile
from random_traces import random_trace

RANKS = 3
ASKED: dict[str, Any] = {"view": WHOLE, "partial": False, "cache": False}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for rank in range(RANKS):
        builder = random_trace(rank)
        builder.metadata["distributedInfo"] = {"rank": rank, "world_size": RANKS}
        builder.write(tmp_path / f"ada_{rank}.rank{rank}.1767319445000000000.pt.trace.json.gz")
    return tmp_path


@pytest.fixture
def files(folder: Path) -> list[TraceFile]:
    found = [single_file(str(path)) for path in sorted(folder.iterdir())]
    return [file for file in found if file is not None]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_traces, "WORTH_BYTES", 1)
    monkeypatch.setattr(several_traces, "cores", lambda: 2)


def test_profiles_come_back_in_the_order_of_the_files(files):
    seen = []
    requests = [ReadRequest(file, "profile", WHOLE, partial=False, cache=False) for file in files]
    found = {}
    answers_of_processes(
        requests,
        workers=2,
        got=lambda place, one: found.update({place: (one, threading.current_thread())}),
        progress=lambda *step: seen.append((*step, threading.current_thread())),
    )
    expected = [read_profile(file, **ASKED) for file in files]
    assert [msgspec.msgpack.decode(found[place][0], type=Profile) for place in range(RANKS)] == expected
    assert {place for place, _, _ in seen} == set(found) == {0, 1, 2}
    assert {thread for _, _, thread in seen} | {thread for _, thread in found.values()} == {threading.current_thread()}


@pytest.mark.parametrize("worth_bytes", [1, 1 << 40], ids=["processes", "here"])
def test_a_progress_may_ask_for_the_ranks_that_are_done(folder, at_once, monkeypatch, worth_bytes):
    class Counting:
        def __init__(self):
            self.files = []

        def __call__(self, done, total): ...

        def files_done(self, done, total):
            self.files.append((done, total))

    monkeypatch.setattr(several_traces, "WORTH_BYTES", worth_bytes)
    counting = Counting()
    load_profile(folder, cache=False, progress=counting)
    assert counting.files == [(1, 3), (2, 3), (3, 3)]


def test_a_run_of_many_ranks_is_the_same_either_way(folder, at_once, monkeypatch):
    seen = []
    together = load_profile(folder, cache=False, progress=lambda done, total: seen.append((done, total)))
    monkeypatch.setattr(several_traces, "WORTH_BYTES", 1 << 40)
    assert together == load_profile(folder, cache=False)
    assert together.trace.ranks == [0, 1, 2]
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize(
    "program",
    ["", "/no/such/python", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho something that is no message\ncat > /dev/null\n"],
    ids=["none", "missing", "ends", "speaks of something else"],
)
def test_without_workers_the_ranks_are_read_here(folder, at_once, monkeypatch, program):
    expected = load_profile(folder, cache=False)
    if program.startswith("#!"):
        script = folder.parent / "worker"
        script.write_text(program)
        script.chmod(0o755)
        program = str(script)
    monkeypatch.setattr(sys, "executable", program)
    assert load_profile(folder, cache=False) == expected


def test_without_threads_the_ranks_are_read_here(folder, at_once, monkeypatch):
    expected = load_profile(folder, cache=False)
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith("deepscope-worker"):
            raise RuntimeError("can't create new thread at interpreter shutdown")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert load_profile(folder, cache=False) == expected


def test_workers_keep_what_they_read(folder, at_once, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    first = load_profile(folder)
    monkeypatch.setattr(several_traces, "answers_of_processes", None)
    assert load_profile(folder) == first


def test_a_script_without_a_guard_may_load_many_ranks(folder, tmp_path_factory):
    script = tmp_path_factory.mktemp("script") / "mine.py"
    script.write_text(
        "import deepscope.store.several_traces as reading, deepscope\n"
        "reading.WORTH_BYTES, reading.cores = 1, lambda: 2\n"
        f"print(deepscope.load_profile({str(folder)!r}, cache=False).trace.ranks)\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("[0, 1, 2]\n", "")


@pytest.mark.parametrize(
    ("files", "workers"),
    [
        ([TraceFile("/a.json", 1 << 30, 0)], 0),
        ([TraceFile("/a.json", 1 << 20, 0)] * 8, 0),
        ([TraceFile("/a.json.gz", 4 << 20, 0)] * 8, 4),
        ([TraceFile("/a.json.gz", 4 << 20, 0)] * 2, 2),
        ([TraceFile("http://b/a.json", 1 << 30, 0)] * 8, 8),
        ([TraceFile("http://b/a.json", 1 << 10, 0)] * 8, 2),
        ([TraceFile("memory://b/a.json", 1 << 30, 0)] * 8, 0),
        ([TraceFile("ours://b/a.json", 1 << 30, 0)] * 8, 0),
    ],
)
def test_processes_are_started_only_where_they_are_worth_it(monkeypatch, files, workers):
    monkeypatch.setattr(several_traces, "cores", lambda: 4)
    assert workers_for(files) == workers
