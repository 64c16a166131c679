"""On a CUDA device: NVML's counters stand in the trace, for the device that torch uses and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.store import load_profile
from deepscope.trace.read import read_trace

pytestmark = pytest.mark.gpu


def test_the_devices_clock_power_and_use_are_counted(tmp_path: Path):
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    x = torch.randn(4096, 4096, device="cuda")
    with deepscope.profile(tmp_path, wait=0, warmup=1, active=4, counter_interval=0.02) as recording:
        for _ in range(5):
            for _ in range(40):
                x = (x @ x).clamp(-1, 1)
            torch.cuda.synchronize()
            recording.step()
    profile = load_profile(recording.traces[0])
    account = read_trace(recording.traces[0]).header.counters
    assert account is not None
    (device,) = account.devices
    assert device.name == torch.cuda.get_device_name()
    rows = {row.counter: row for row in profile.counters if row.series == device.series}
    assert 0 < rows["GPU SM clock"].mean <= device.max_sm_mhz
    assert x.nbytes <= rows["GPU memory"].largest <= torch.cuda.get_device_properties(0).total_memory
    assert rows["GPU power"].mean > 0
    assert rows["GPU busy"].largest > 0
