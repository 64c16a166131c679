"""NUMA nodes: on which ones the process may run, has its memory, and on which one a GPU hangs.

/sys/devices/system/node (Documentation/ABI/stable/sysfs-devices-node), /proc/self/numa_maps (proc(5)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series, number_in, text_of
from deepscope.trace.format.counters import MemoryNode

_MOST_WALKED_BYTES = 4 << 30
"""numa_maps walks the page tables of the whole process; of a larger one its control group is asked."""
_PAGES = re.compile(rb" N(\d+)=(\d+)")
_PAGE_SIZE = re.compile(rb" kernelpagesize_kB=(\d+)")


class MemoryNodes:
    """Memory that processes got from a node that is not theirs."""

    def __init__(self, root: Path) -> None:
        folders = _folders(root)
        if len(folders) < 2:
            raise NoSensorError("the machine has one NUMA node")
        self._files = [KernelFile(folder / "numastat") for folder in folders.values()]
        self.series = [Series("NUMA other node", str(number), is_total=True) for number in folders]

    def read(self) -> Sequence[float]:
        """Pages since the machine started."""
        return [_other_node(file.read()) for file in self._files]

    def close(self) -> None:
        for file in self._files:
            file.close()


def _other_node(text: bytes) -> float:
    for line in text.splitlines():
        name, _, count = line.partition(b" ")
        if name == b"other_node":
            return int(count)
    return float("nan")


def _folders(root: Path) -> dict[int, Path]:
    """The nodes' folders by number, of those that have cores or memory."""
    found = (root / "sys/devices/system/node").glob("node[0-9]*")
    return dict(sorted((int(path.name[4:]), path) for path in found if path.name[4:].isdigit()))


def allowed_cpus() -> Collection[int]:
    """The cores that this thread may run on; empty where the system does not tell."""
    ask = getattr(os, "sched_getaffinity", None)
    return ask(0) if ask is not None else ()


def memory_nodes(root: Path, allowed: Collection[int], resident_bytes: int) -> list[MemoryNode]:
    """The nodes as the process uses them; nothing where there is but one."""
    folders = _folders(root)
    if len(folders) < 2:
        return []
    used = _from_maps(root) if resident_bytes <= _MOST_WALKED_BYTES else _from_group(root)
    found = []
    for number, folder in folders.items():
        cpus = set(_numbers(text_of(folder / "cpulist")))
        distances = [int(one) for one in text_of(folder / "distance").split() if one.isdigit()]
        found.append(
            MemoryNode(
                node=number,
                cpus=len(cpus),
                allowed_cpus=len(cpus.intersection(allowed)),
                process_bytes=used.get(number, 0),
                distances=distances if len(distances) == len(folders) else [],
            )
        )
    return found


def _numbers(ranges: str) -> Iterator[int]:
    """`0-3,8` as 0, 1, 2, 3, 8."""
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            yield from range(int(first), int(last or first) + 1)


def _from_maps(root: Path) -> dict[int, int]:
    """Bytes by node, of all that is mapped."""
    found: dict[int, int] = {}
    try:
        text = (root / "proc/self/numa_maps").read_bytes()
    except OSError:
        return found
    for line in text.splitlines():
        size = _PAGE_SIZE.search(line)
        size_bytes = 1024 * int(size[1]) if size else 4096
        for node, pages in _PAGES.findall(line):
            found[int(node)] = found.get(int(node), 0) + int(pages) * size_bytes
    return found


def _from_group(root: Path) -> dict[int, int]:
    """Bytes by node, of the process's control group (version 2): of what is no file's."""
    for line in text_of(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            statistics = text_of(root / "sys/fs/cgroup" / line[3:].strip("/") / "memory.numa_stat")
            for row in statistics.splitlines():
                name, *values = row.split()
                if name == "anon":
                    pairs = (value.partition("=") for value in values)
                    return {int(node[1:]): int(size) for node, _, size in pairs}
    return {}


def node_of_device(root: Path, bus_id: str) -> int:
    """The node on which a PCI device hangs; -1 where it is not known. NVML writes more digits than the kernel does."""
    domain, _, rest = bus_id.lower().partition(":")
    return number_in(root / "sys/bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node")
