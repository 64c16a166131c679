"""Counters of the machine in a recorded trace: on its clock, in its steps, in the report, and never in the way."""

from __future__ import annotations

import errno
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.capture import resources
from deepscope.capture.counters import sampler
from deepscope.store import load_profile
from deepscope.trace.format.counters import PREFIX
from deepscope.trace.format.header import Header
from deepscope.trace.read import read_trace
from recorded import TESTS, run_python

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def recorded(folder: Path, **options: object) -> Path:
    with deepscope.profile(folder, root=TESTS, wait=0, warmup=1, active=3, **options) as recording:
        for _ in range(4):
            for _ in range(40):
                torch.randn(200, 200) @ torch.randn(200, 200)
            recording.step()
    (path,) = recording.traces
    return path


@on_linux
def test_samples_stand_on_the_traces_clock(tmp_path: Path):
    path = recorded(tmp_path, counter_interval=0.01)
    trace = read_trace(path)
    own = [i for i, name in enumerate(trace.strings) if name.startswith(PREFIX)]
    assert own
    at = trace.counters.ts_ns
    events = trace.events
    first, last = int(events.start_ns.min()), int(events.end_ns.max())
    # The thread takes its first sample once it has the interpreter's lock, its last one when it hears of the end.
    slack = 200_000_000
    assert first - slack < at.min()
    assert at.max() < last + slack
    account = trace.header.counters
    assert account is not None
    assert account.samples >= 2
    assert account.cost_ns > 0
    assert "InfiniBand" in {one.sensor for one in account.missing} or Path("/sys/class/infiniband").exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]


@on_linux
def test_the_profile_has_means_and_peaks_by_step(tmp_path: Path):
    profile = load_profile(recorded(tmp_path, counter_interval=0.01))
    rows = {(row.counter, row.series): row for row in profile.counters}
    process = rows["process CPU", "process"]
    assert 0 < process.mean <= process.largest
    used = rows["memory", "process"]
    assert 1 << 20 < used.smallest <= used.mean <= used.largest
    assert {block.block for block in used.blocks} <= {step.number for step in profile.steps}


def test_off_is_off(tmp_path: Path):
    for topics in ({"counters": False}, {"topics": "minimal"}):
        trace = read_trace(recorded(tmp_path / str(len(topics)), **topics))
        assert trace.header.counters is None
        assert not len(trace.counters.ts_ns)


def test_viewers_of_others_get_plain_counter_events(tmp_path: Path):
    path = recorded(tmp_path, compress=False, counter_interval=0.01)
    document = json.loads(path.read_text())
    events = [event for event in document["traceEvents"] if event["ph"] == "C" and event["name"].startswith(PREFIX)]
    assert sys.platform != "linux" or events
    for event in events:
        assert event["pid"] == document["deepscope"]["pid"]
        assert event["args"]
        assert all(isinstance(value, int | float) for value in event["args"].values())


def losses(folder: Path | None, **options: object) -> list[float]:
    torch.manual_seed(0)
    net = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    found = []

    def step() -> None:
        optimizer.zero_grad()
        loss = net(torch.randn(16, 32)).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())

    if folder is None:
        for _ in range(6):
            step()
        return found
    with deepscope.profile(folder, root=TESTS, wait=0, warmup=0, active=6, **options) as recording:
        for _ in range(6):
            step()
            recording.step()
    return found


def test_losses_are_the_same_to_the_last_bit(tmp_path: Path):
    assert losses(tmp_path, counter_interval=0.01) == losses(None)


@on_linux
def test_many_recordings_leave_no_file_open(tmp_path: Path):
    def recorded_once() -> int:
        with deepscope.profile(tmp_path, root=TESTS, counters="run", counter_interval=0.01):
            torch.randn(4, 4) @ torch.randn(4, 4)
        return len(list(Path("/proc/self/fd").iterdir()))

    recorded_once()  # what torch and imports open for good
    before = recorded_once()
    for _ in range(4):
        after = recorded_once()
    assert after == before


def run_file(folder: Path) -> Path:
    (path,) = folder.glob("*.counters")
    return path


@on_linux
def test_a_whole_run_is_counted_beside_its_windows(tmp_path: Path):
    path = recorded(tmp_path, counters=True, counter_interval=0.01)
    beside = run_file(tmp_path)
    whole, window = read_trace(beside), read_trace(path)
    assert not len(whole.events.start_ns)
    assert whole.header.run_id == window.header.run_id
    assert whole.header.counters is not None
    assert whole.header.counters.interval_ns >= 100_000_000
    # On one clock: the window lies within the run.
    assert window.header.clock is not None
    began = window.unix_base_ns + int(window.events.start_ns.min())
    assert whole.base_ns + int(whole.counters.ts_ns.min()) <= began
    assert whole.base_ns + int(whole.counters.ts_ns.max()) >= began
    # It is no trace of the run's, and can be read when it is named.
    assert load_profile(tmp_path).trace.path == str(path)
    assert {row.counter for row in load_profile(beside).counters} >= {"CPU", "memory", "process CPU"}
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]
    assert not list(tmp_path.glob(".*part"))


@on_linux
def test_a_run_is_counted_on_after_its_last_window(tmp_path: Path):
    with deepscope.profile(tmp_path, root=TESTS, wait=0, warmup=0, active=1, counters="run") as recording:
        for _ in range(3):
            torch.randn(50, 50) @ torch.randn(50, 50)
            recording.step()
        (path,) = recording.traces
        assert not list(tmp_path.glob("*.counters"))
    assert len(list(tmp_path.glob("*.counters"))) == 1
    assert recording.traces == [path]


@on_linux
def test_the_end_of_a_run_waits_for_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sampler, "_PATIENCE_S", 0.0)  # of the end of a window
    counters = resources.RunCounters(0.001, lambda: Header(pid=1), lambda: tmp_path / "a.counters")
    counters.start()
    counters.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]


@on_linux
def test_a_disk_that_is_full_is_not_filled_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried = threading.Event()

    def full(*_: object) -> Iterator[bytes]:
        tried.set()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(resources, "KEEP_EVERY_S", 0.0)
    monkeypatch.setattr(resources, "counter_events", full)
    counters = resources.RunCounters(0.001, lambda: Header(pid=1), lambda: tmp_path / "a.counters")
    counters.start()
    assert tried.wait(60)
    counters.stop()
    assert not list(tmp_path.iterdir())


@on_linux
def test_of_a_run_that_is_killed_there_is_what_was_kept(tmp_path: Path):
    program = f"""
import os, sys, time, torch, deepscope
from deepscope.capture import resources
resources.KEEP_EVERY_S = 0.2
options = {{"counters": "run", "counter_interval": 0.01}}
with deepscope.profile({str(tmp_path)!r}, wait=0, warmup=0, active=1, **options) as recording:
    recording.step()
    while not [name for name in os.listdir({str(tmp_path)!r}) if name.endswith(".counters")]:
        time.sleep(0.05)
    os._exit(9)
"""
    assert run_python(program).returncode == 9
    assert {row.counter for row in load_profile(run_file(tmp_path)).counters} >= {"CPU", "memory"}


@on_linux
def test_a_rank_that_does_not_record_counts_nothing(tmp_path: Path):
    with deepscope.profile(tmp_path, root=TESTS, ranks=[7], counters="run"):
        torch.randn(4)
    assert not list(tmp_path.glob("*"))


@on_linux
def test_a_folder_that_cannot_be_written_costs_the_file_alone(tmp_path: Path, recwarn: pytest.WarningsRecorder):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with deepscope.profile(blocked / "traces", root=TESTS, wait=5, warmup=0, active=1, counters="run") as recording:
        recording.step()
    assert recording.traces == []
