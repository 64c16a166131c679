"""`memory_snapshot=True`: torch's history of a window, beside its trace. A stand-in has torch's functions of CUDA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import deepscope
from deepscope.capture import window_memory
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.recorder import Recorder
from deepscope.store.companion_files import load_snapshot
from deepscope.trace.format.run_account import snapshot_path
from memory_snapshots import Allocator, of_line
from recorded import TESTS

EACH_STEP: dict[str, Any] = {"wait": 0, "warmup": 0, "active": 1, "repeat": 0}


class Cuda:
    """`torch.cuda.memory` of a device that allocates something in each window."""

    def __init__(self) -> None:
        self.is_recording = False
        self.calls: list[tuple[str | None, dict[str, Any]]] = []
        self.is_broken = False

    def record(
        self, enabled: str | None = "all", stacks: str = "all", max_entries: int = 1, context: str = "all"
    ) -> None:
        self.calls.append((enabled, {"stacks": stacks, "max_entries": max_entries, "context": context}))
        self.is_recording = enabled is not None

    def snapshot(self) -> dict[str, Any]:
        if self.is_broken:
            raise RuntimeError("CUDA error: the device is lost")
        allocator = Allocator()
        allocator.alloc(1000, of_line(7))
        return allocator.snapshot()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    memory = SimpleNamespace(_record_memory_history=made.record, _snapshot=made.snapshot)
    stand_in = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: True, memory=memory),
        _C=SimpleNamespace(_cuda_isHistoryEnabled=lambda: made.is_recording),
    )
    monkeypatch.setattr(window_memory, "torch", stand_in)
    return made


def test_torch_has_the_functions_that_the_stand_in_has() -> None:
    assert {"stacks", "max_entries", "context"} <= window_memory.inspect.signature(
        torch.cuda.memory._record_memory_history
    ).parameters.keys()
    assert callable(torch.cuda.memory._snapshot)


def test_the_snapshot_of_each_window_lies_beside_its_trace(
    record: Callable[..., Recorder], cuda: Cuda, tmp_path: Path
) -> None:
    traces = record(2, memory_snapshot=True, **EACH_STEP).traces
    for trace in traces:
        (device,) = load_snapshot(str(snapshot_path(trace))).devices
        assert [row.line for row in device.peak.holders] == [7]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        path.name for trace in traces for path in (trace, snapshot_path(trace))
    }
    given = {"stacks": "python", "max_entries": window_memory.MOST_ENTRIES, "context": "alloc"}
    assert [enabled for enabled, _ in cuda.calls][:4] == ["all", None, "all", None]
    assert cuda.calls[0][1] == given


def test_the_snapshot_goes_with_its_trace(record: Callable[..., Recorder], cuda: Cuda, tmp_path: Path) -> None:
    (trace,) = record(3, memory_snapshot=True, keep_last=1, **EACH_STEP).traces
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {trace.name, snapshot_path(trace).name}
    assert not cuda.is_recording


def test_an_exception_that_ends_the_run_leaves_its_snapshot(cuda: Cuda, tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, memory_snapshot=True, root=TESTS)

    def run_out() -> None:
        with recording:
            torch.zeros(8).add(1)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.cuda.OutOfMemoryError):
        run_out()
    recording.wait()
    (trace,) = recording.traces
    assert load_snapshot(str(snapshot_path(trace))).devices
    assert not cuda.is_recording


def test_a_history_of_the_users_goes_on(record: Callable[..., Recorder], cuda: Cuda) -> None:
    cuda.is_recording = True
    (trace,) = record(1, memory_snapshot=True, **EACH_STEP).traces
    assert (cuda.calls, cuda.is_recording) == ([], True)
    assert snapshot_path(trace).exists()


def test_a_device_that_is_lost_costs_the_snapshot_alone(record: Callable[..., Recorder], cuda: Cuda) -> None:
    cuda.is_broken = True
    with pytest.warns(RecordingWarning, match="no memory snapshot: RuntimeError: CUDA error"):
        (trace,) = record(1, memory_snapshot=True, **EACH_STEP).traces
    assert trace.exists()
    assert not snapshot_path(trace).exists()
    assert not cuda.is_recording


def test_without_a_device_a_line_says_what_tells_of_memory(record: Callable[..., Recorder]) -> None:
    with pytest.warns(RecordingWarning, match=r"no such device; the trace's own blocks \(profile_memory=True\)"):
        (trace,) = record(1, memory_snapshot=True, **EACH_STEP).traces
    assert not snapshot_path(trace).exists()


def test_without_the_option_torch_records_no_history(record: Callable[..., Recorder], cuda: Cuda) -> None:
    record(1, **EACH_STEP)
    assert cuda.calls == []
