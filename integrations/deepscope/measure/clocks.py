"""Clocks for calls: the host's, and the events of a device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from deepscope.measure.timing import Sample

Call = Callable[[], object]


class HostClock:
    """`time.perf_counter_ns`, for work that is done when the call returns."""

    returns_early = False

    def now_ns(self) -> int:
        """The host's time."""
        return time.perf_counter_ns()

    def sample(self, call: Call, times: int) -> Sample:
        """Call so many times."""
        begin = time.perf_counter_ns()
        for _ in range(times):
            call()
        one = (time.perf_counter_ns() - begin) / times
        return Sample(one, one)

    def in_a_row_ns(self, call: Call, times: int) -> int:
        """The same, as a sum."""
        begin = time.perf_counter_ns()
        for _ in range(times):
            call()
        return time.perf_counter_ns() - begin


class DeviceClock:
    """Events on the device's current stream, which is idle when the first one is recorded."""

    returns_early = True

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._module: Any = getattr(torch, device.type)  # torch.cuda, torch.xpu, torch.mps, …

    def now_ns(self) -> int:
        """The host's time."""
        return time.perf_counter_ns()

    def _wait(self) -> None:
        if self._device.type == "mps":
            self._module.synchronize()
        else:
            self._module.synchronize(self._device)

    def _event(self) -> Any:
        kind = getattr(self._module, "Event", None) or self._module.event.Event
        return kind(enable_timing=True)

    def sample(self, call: Call, times: int) -> Sample:
        """Call so many times, and wait for the work."""
        begin, end = self._event(), self._event()
        self._wait()
        started = time.perf_counter_ns()
        begin.record()
        for _ in range(times):
            call()
        host = time.perf_counter_ns() - started
        end.record()
        self._wait()
        return Sample(begin.elapsed_time(end) * 1e6 / times, host / times)

    def in_a_row_ns(self, call: Call, times: int) -> int:
        """Call so many times, and wait once."""
        self._wait()
        started = time.perf_counter_ns()
        for _ in range(times):
            call()
        self._wait()
        return time.perf_counter_ns() - started


def peak_bytes(call: Call, device: torch.device) -> int | None:
    """The most memory that a call has on the device above what was allocated before; None where torch cannot tell.

    On the CPU torch's profiler tells; it records the call, if no other recording is under way.
    """
    if device.type == "cpu":
        from deepscope.capture.memory.peak import cpu_peak_bytes

        return cpu_peak_bytes(call)
    module = getattr(torch, device.type)
    if not all(hasattr(module, name) for name in ("reset_peak_memory_stats", "max_memory_allocated")):
        return None
    module.synchronize(device)
    before = int(module.memory_allocated(device))
    module.reset_peak_memory_stats(device)
    call()
    module.synchronize(device)
    return max(0, int(module.max_memory_allocated(device)) - before)
