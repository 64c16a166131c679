"""Counts and benchmarks on a CUDA device: backward on autograd's own threads, times until the device is done."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import deepscope

pytestmark = pytest.mark.gpu


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(checkpoint(self.inner, x, use_reentrant=False))


def test_backward_on_autograds_thread_stands_at_its_module():
    on_device = deepscope.count_model(Checkpointed().cuda(), torch.randn(4, 64, device="cuda"), backward=True)
    on_cpu = deepscope.count_model(Checkpointed(), torch.randn(4, 64), backward=True)
    assert [(row.path, row.flops, row.backward_flops) for row in on_device.by_module] == [
        (row.path, row.flops, row.backward_flops) for row in on_cpu.by_module
    ]


def test_a_benchmark_waits_for_the_device():
    x = torch.randn(4096, 4096, device="cuda")
    timing = deepscope.benchmark(torch.mm, x, x, seconds=0.2)
    assert timing.device == "cuda:0"
    assert timing.host_ns < timing.median_ns
    assert timing.peak_bytes is not None
    assert timing.peak_bytes >= 4096 * 4096 * 4
    assert 2 * 4096**3 / timing.median_ns < 2_000_000  # 2 PFLOP/s: no device computes float32 faster


def test_waits_are_events_where_they_are_asked_for(tmp_path):
    with deepscope.profile(tmp_path, topics={"sync"}) as recording:
        torch.randn(8, device="cuda").sum().item()
        torch.cuda.synchronize()
    trace = deepscope.read_trace(recording.traces[0])
    assert any("ynchroni" in name for name in trace.strings)
