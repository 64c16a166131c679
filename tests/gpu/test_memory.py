"""Memory on a device, against what torch's own allocator says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import deepscope
from deepscope.store.companion_files import load_snapshot
from deepscope.trace.format.run_account import snapshot_path
from gpu.recorded import record

pytestmark = pytest.mark.gpu

FLOAT, BATCH, WIDE = 4, 4096, 1024


def test_the_peak_is_the_allocators_and_what_held_it_is_told(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(WIDE, WIDE), nn.ReLU(), nn.Linear(WIDE, WIDE)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    size = sum(one.numel() * FLOAT for one in net.parameters())
    highest: list[int] = []

    def code() -> None:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            optimizer.zero_grad()
            out = net(torch.randn(BATCH, WIDE, device="cuda"))  # @forward
            out.square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        highest.append(torch.cuda.max_memory_allocated())

    found = record(code, tmp_path, profile_memory=True)
    (device,) = found.profile.memory.devices
    assert device.largest_peak_bytes == highest[-1]
    assert device.capacity_bytes > 0
    assert max(point.reserved_bytes for point in device.curve) >= highest[-1]
    assert (device.peak.parameters_bytes, device.peak.optimizer_bytes) == (size, 2 * size)
    assert found.at("forward").peak_activations_bytes >= FLOAT * BATCH * WIDE
    rows = [*found.profile.lines, found.profile.no_line]
    assert sum(row.peak_bytes for row in rows) == highest[-1]


def test_what_was_live_is_told_when_the_device_runs_out(tmp_path: Path) -> None:
    net = nn.Linear(WIDE, WIDE).cuda()
    recording = deepscope.profile(tmp_path, profile_memory=True)

    def run_out() -> None:
        with recording:
            out = net(torch.randn(BATCH, WIDE, device="cuda")).relu()
            torch.empty(1 << 50, device="cuda")
            out.sum().backward()

    with pytest.raises(torch.cuda.OutOfMemoryError):
        run_out()
    profile = recording.profile
    assert profile is not None
    failure = profile.memory.failure
    assert failure is not None
    assert failure.device.startswith("cuda")
    assert failure.held.activations_bytes == FLOAT * BATCH * WIDE
    assert failure.held.inputs_bytes == FLOAT * BATCH * WIDE


def test_a_snapshot_of_torchs_history_lies_beside_the_trace(tmp_path: Path) -> None:
    kept: list[torch.Tensor] = []
    with deepscope.profile(tmp_path, memory_snapshot=True) as recording:
        kept.append(torch.empty(BATCH, WIDE, device="cuda"))
    assert not torch._C._cuda_isHistoryEnabled()
    recording.wait()
    (device,) = load_snapshot(str(snapshot_path(recording.traces[0]))).devices
    assert device.has_peak
    assert sum(row.size_bytes for row in device.peak.holders) == device.peak.allocated_bytes
    own = [row for row in device.peak.holders if row.file == __file__]
    assert [(row.kind, row.size_bytes) for row in own] == [("line", FLOAT * BATCH * WIDE)]
