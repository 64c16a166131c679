"""The clock of a device, on a device that is made of numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from deepscope.measure.clocks import DeviceClock, peak_bytes
from deepscope.measure.timing import Limits, measured, timing_of


class Device:
    """A queue of work: a call takes a microsecond of the host and a millisecond of the device."""

    def __init__(self) -> None:
        self.host_ns = 0
        self.busy_until_ns = 0
        self.allocated = 1000
        self.most = 0
        self.waits = 0

    def call(self) -> None:
        self.host_ns += 1_000
        self.busy_until_ns = max(self.busy_until_ns, self.host_ns) + 1_000_000
        self.most = max(self.most, self.allocated + 64)

    def synchronize(self, _device: Any) -> None:
        self.waits += 1
        self.host_ns = max(self.host_ns, self.busy_until_ns)

    def event(self, **options: Any) -> Any:
        assert options == {"enable_timing": True}
        device = self

        class Event:
            def record(self) -> None:
                self.at_ns = max(device.host_ns, device.busy_until_ns)

            def elapsed_time(self, other: Event) -> float:
                return (other.at_ns - self.at_ns) / 1e6

        return Event()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    names = SimpleNamespace(
        Event=made.event,
        synchronize=made.synchronize,
        memory_allocated=lambda _: made.allocated,
        max_memory_allocated=lambda _: made.most,
        reset_peak_memory_stats=lambda _: setattr(made, "most", made.allocated),
    )
    monkeypatch.setattr(torch, "xpu", names)
    monkeypatch.setattr("deepscope.measure.clocks.time", SimpleNamespace(perf_counter_ns=lambda: made.host_ns))
    return made


def test_latency_is_the_devices_and_calls_in_a_row_do_not_wait(device: Device):
    clock = DeviceClock(torch.device("xpu", 0))
    found = measured(device.call, clock, Limits(seconds=0.05))
    timing = timing_of(found, name="f", device="xpu:0")
    assert timing.median_ns == pytest.approx(1_001_000)  # the host's microsecond is part of it
    assert timing.host_ns == 1_000
    assert timing.calls_per_second == pytest.approx(1000, rel=0.01)
    assert device.waits == 2 * (timing.warmup_calls + timing.calls) + 2


def test_the_peak_is_what_a_call_adds(device: Device):
    assert peak_bytes(device.call, torch.device("xpu", 0)) == 64
