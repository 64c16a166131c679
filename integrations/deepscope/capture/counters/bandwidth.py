"""Memory bandwidth by the processor's own counters, where resctrl is mounted (https://docs.kernel.org/filesystems/resctrl.html).

It counts what goes between the last-level cache and memory, of the whole machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series

MOST_DOMAINS = 32


class MemoryBandwidth:
    """A series for each last-level cache."""

    def __init__(self, root: Path) -> None:
        self.series: list[Series] = []
        self._files: list[KernelFile] = []
        for folder in sorted((root / "sys/fs/resctrl/mon_data").glob("mon_L3_*"))[:MOST_DOMAINS]:
            try:
                self._files.append(KernelFile(folder / "mbm_total_bytes"))
            except NoSensorError:
                continue
            self.series.append(Series("memory bandwidth", folder.name.removeprefix("mon_"), is_total=True))
        if not self._files:
            raise NoSensorError("resctrl is not mounted at /sys/fs/resctrl, may not be read, or counts no bandwidth")

    def read(self) -> Sequence[float]:
        """Bytes since resctrl was mounted; a counter may say that it is unavailable for a while."""
        return [_number(file.read()) for file in self._files]

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files:
            file.close()


def _number(text: bytes) -> float:
    return int(text) if text.strip().isdigit() else float("nan")
