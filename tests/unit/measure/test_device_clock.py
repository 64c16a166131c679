"""The clock of a device, on a device that is made of numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from deepscope.measure.timing import clock_of, measured, peak_bytes, timing_of


class Device:
    """A queue of work: a call takes a microsecond of the host and a millisecond of the device."""

    def __init__(self) -> None:
        self.host_ns = 0
        self.busy_until_ns = 0
        self.allocated = 1000
        self.most = 0

    def call(self) -> None:
        self.host_ns += 1_000
        self.busy_until_ns = max(self.busy_until_ns, self.host_ns) + 1_000_000
        self.most = max(self.most, self.allocated + 64)

    def host_seconds(self) -> float:
        return self.host_ns / 1e9

    def synchronize(self, _device: Any) -> None:
        self.host_ns = max(self.host_ns, self.busy_until_ns)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    names = SimpleNamespace(
        synchronize=made.synchronize,
        memory_allocated=lambda _: made.allocated,
        max_memory_allocated=lambda _: made.most,
        reset_peak_memory_stats=lambda _: setattr(made, "most", made.allocated),
    )
    monkeypatch.setattr(torch, "xpu", names)
    monkeypatch.setattr("deepscope.measure.timing.time", SimpleNamespace(perf_counter=made.host_seconds))
    return made


def test_latency_is_the_devices_and_calls_in_a_row_do_not_wait(device: Device):
    found = measured(device.call, clock_of(torch.device("xpu", 0)), 0.05, host_clock=device.host_seconds)
    timing = timing_of(found, name="f", device="xpu:0")
    assert timing.median_ns == pytest.approx(1_001_000)  # the host's microsecond is part of it
    assert timing.host_ns == pytest.approx(1_000)
    assert timing.calls_per_second == pytest.approx(1000, rel=0.01)


def test_the_peak_is_what_a_call_adds(device: Device):
    assert peak_bytes(device.call, torch.device("xpu", 0)) == 64
