"""Bytes over InfiniBand, from the adapters' own counters in /sys.

RDMA passes the kernel by: an interface counts nothing of it, the adapter does. Its data counters are in units of four
bytes (Documentation/infiniband/sysfs.rst; InfiniBand specification 16.1.3.5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series

MOST_PORTS = 16
_LANE_BYTES = 4


class Adapters:
    """The ports of InfiniBand adapters (RoCE ones, too)."""

    def __init__(self, root: Path) -> None:
        ports = sorted((root / "sys/class/infiniband").glob("*/ports/*/counters"))
        self.series: list[Series] = []
        self._files: list[KernelFile] = []
        for counters in ports[:MOST_PORTS]:
            name = f"{counters.parents[2].name} port {counters.parent.name}"
            try:
                files = [KernelFile(counters / "port_rcv_data"), KernelFile(counters / "port_xmit_data")]
            except NoSensorError:
                continue
            if any(math.isnan(_words(file)) for file in files):
                for file in files:
                    file.close()
                continue
            self._files += files
            self.series += [
                Series(track, name, is_total=True, scale=_LANE_BYTES)
                for track in ("InfiniBand received", "InfiniBand sent")
            ]
        if not self._files:
            raise NoSensorError(
                "adapters in /sys/class/infiniband do not count" if ports else "no adapter in /sys/class/infiniband"
            )

    def read(self) -> Sequence[float]:
        """Words of four bytes."""
        return [_words(file) for file in self._files]

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files:
            file.close()


def _words(file: KernelFile) -> float:
    """NaN for a port that does not count, or not at this moment: it says "N/A (no PMA)", or reading it fails."""
    try:
        return int(file.read())
    except (OSError, ValueError):
        return math.nan
