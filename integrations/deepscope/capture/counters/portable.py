"""Where there is no /proc: what psutil tells (macOS, Windows)."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

from deepscope.capture.counters.cpu import MOST_CORES
from deepscope.capture.counters.disk import MOST_DISKS
from deepscope.capture.counters.network import MOST_INTERFACES
from deepscope.capture.counters.source import NoSensorError, Series

__all__ = ["PsutilCounters"]

_NAN = math.nan


class PsutilCounters:
    """CPU, memory, disks and network as far as the system tells them."""

    def __init__(self) -> None:
        try:
            self._psutil: Any = importlib.import_module("psutil")
        except ImportError:
            raise NoSensorError("psutil is not installed: pip install 'deepscope[counters]'") from None
        psutil = self._psutil
        self._process = psutil.Process()
        self.count = len(psutil.cpu_times(percpu=True))
        disks = _named(psutil.disk_io_counters(perdisk=True))
        nets = _named(psutil.net_io_counters(pernic=True))
        self._disks = sorted(disks, key=lambda name: -(disks[name].read_bytes + disks[name].write_bytes))[:MOST_DISKS]
        self._nets = sorted(nets, key=lambda name: -(nets[name].bytes_sent + nets[name].bytes_recv))[:MOST_INTERFACES]
        cores = min(self.count, MOST_CORES)
        self.series = [
            Series("CPU", "all", is_total=True, scale=100 / max(self.count, 1), most=100),
            *(Series("CPU cores", str(core), is_total=True, scale=100, most=100) for core in range(cores)),
            Series("process CPU", "process", is_total=True, scale=100),
            Series("memory", "used"),
            Series("memory", "process"),
            Series("memory", "swap", may_vanish=True),
            *(Series(track, name, is_total=True) for name in self._disks for track in ("disk read", "disk written")),
            *(
                Series(track, name, is_total=True)
                for name in self._nets
                for track in ("network received", "network sent")
            ),
        ]

    def read(self) -> Sequence[float]:
        """Seconds and bytes."""
        psutil = self._psutil
        cores = [_in_use(core) for core in psutil.cpu_times(percpu=True)]
        own = self._process.cpu_times()
        memory = psutil.virtual_memory()
        disks = _named(psutil.disk_io_counters(perdisk=True))
        nets = _named(psutil.net_io_counters(pernic=True))
        found = [sum(cores), *(cores[:MOST_CORES] + [_NAN] * (min(self.count, MOST_CORES) - len(cores)))]
        found += [own.user + own.system, memory.total - memory.available]
        found += [self._process.memory_info().rss, psutil.swap_memory().used]
        for name in self._disks:
            disk = disks.get(name)
            found += [_NAN, _NAN] if disk is None else [disk.read_bytes, disk.write_bytes]
        for name in self._nets:
            net = nets.get(name)
            found += [_NAN, _NAN] if net is None else [net.bytes_recv, net.bytes_sent]
        return found

    def close(self) -> None:
        """Nothing is open."""


def _named(found: Any) -> dict[str, Any]:
    """What psutil gives by name; None where there is none."""
    return dict(found or {})


def _in_use(core: Any) -> float:
    """Seconds that a core was in use; guests are in user's already."""
    idle = core.idle + getattr(core, "iowait", 0.0)
    guests = getattr(core, "guest", 0.0) + getattr(core, "guest_nice", 0.0)
    return float(sum(core) - idle - guests)
