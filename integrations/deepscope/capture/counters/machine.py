"""All that can be counted on this machine, and its NUMA nodes: where the process may run, and has its memory.

Nodes: /sys/devices/system/node (Documentation/ABI/stable/sysfs-devices-node), /proc/self/numa_maps (proc(5)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from deepscope.capture import torch_compat
from deepscope.capture.counters.container import Container, resident_bytes
from deepscope.capture.counters.devices import Adapters, AmdDevices, NvidiaDevices
from deepscope.capture.counters.sampler import Opened
from deepscope.capture.counters.source import CounterSource, KernelFile, NoSensorError, Series, text_of
from deepscope.trace.format.counters import CounterAccount, MemoryNode, MissingSensor

MOST_DOMAINS = 32
"""Last-level caches that have a series of memory bandwidth."""

ROOT = Path("/")
_LONGEST = 200
"""Letters of a reason."""
_UNKNOWN_DEVICE = "which device of the vendor's library it is cannot be told"
"""So with a part of a GPU (MIG)."""

Opening = TypeVar("Opening", bound=CounterSource)
Devices = tuple[torch_compat.DeviceInUse, ...]


class Machine:
    """What can be counted, opened when it is first asked for; GPUs anew once torch uses more.

    `root`: where the files of /proc and /sys are looked for that psutil does not read. `devices`: gives the vendor,
    `nvidia` or `amd`, and the GPUs that this process uses.
    """

    def __init__(
        self, root: Path = ROOT, devices: Callable[[], tuple[str, Devices]] = torch_compat.devices_in_use
    ) -> None:
        self._root = root
        self._devices = devices
        self._kernel: Opened | None = None
        self._in_use: tuple[str, Devices] = ("", ())
        self._gpus: Opened = Opened([], CounterAccount())

    def open(self) -> Opened:
        """The sources, with an account that is the caller's own."""
        if self._kernel is None:
            self._kernel = self._open_kernel()
        vendor, in_use = self._devices()
        known = self._in_use[1]
        if not set(in_use) <= set(known):
            for source in self._gpus.sources:
                source.close()
            self._in_use = vendor, tuple(dict.fromkeys((*known, *in_use)))  # what was in use is counted on
            self._gpus = self._open_gpus(*self._in_use)
        mine, theirs = self._kernel.account, self._gpus.account
        account = msgspec.structs.replace(mine, missing=[*mine.missing, *theirs.missing], devices=list(theirs.devices))
        return Opened([*self._kernel.sources, *self._gpus.sources], account)

    def finish(self, account: CounterAccount) -> None:
        """At a window's end: where the process and its memory are."""
        account.nodes = memory_nodes(self._root, allowed_cpus(), resident_bytes(self._root))

    def _open_kernel(self) -> Opened:
        account = CounterAccount(missing=[])
        sources: list[CounterSource] = []

        def tried(sensor: str, make: Callable[[], Opening]) -> Opening | None:
            try:
                sources.append(source := make())
            except Exception as error:  # noqa: BLE001 - one that fails as nobody foresaw leaves the others
                account.missing.append(MissingSensor(sensor, str(error)[:_LONGEST]))
                return None
            return source

        root = self._root
        try:
            from deepscope.capture.counters import system
        except ImportError:
            reason = "psutil is not installed: pip install 'deepscope[counters]'"
            account.missing.append(MissingSensor("CPU, memory, disks and network", reason))
        else:
            cores = tried("CPU", system.Cores)
            account.cores = 0 if cores is None else cores.count
            tried("process", system.ThisProcess)
            tried("memory", system.MainMemory)
            tried("disks", lambda: system.Disks(root / "sys/block"))
            tried("network", system.Interfaces)
        if not (root / "proc/self").exists():  # the rest is Linux's
            return Opened(sources, account)
        container = tried("container", lambda: Container(root))
        if container is not None:
            account.container = container.limits
        tried("InfiniBand", lambda: Adapters(root))
        tried("NUMA", lambda: MemoryNodes(root))
        tried("memory bandwidth", lambda: MemoryBandwidth(root))
        return Opened(sources, account)

    def _open_gpus(self, vendor: str, in_use: Devices) -> Opened:
        kinds: dict[str, type[NvidiaDevices] | type[AmdDevices]] = {"nvidia": NvidiaDevices, "amd": AmdDevices}
        missing = [MissingSensor(f"GPU {one.ordinal}", _UNKNOWN_DEVICE) for one in in_use if one.number < 0]
        ordinals = {one.number: one.ordinal for one in in_use if one.number >= 0}
        if not ordinals:
            return Opened([], CounterAccount(missing=missing))
        try:
            found = kinds[vendor](self._root, list(ordinals))
        except Exception as error:  # noqa: BLE001 - a vendor's library fails as it likes, and the rest is counted on
            return Opened([], CounterAccount(missing=[*missing, MissingSensor("GPU", str(error)[:_LONGEST])]))
        missing += [MissingSensor(one.sensor, one.reason[:_LONGEST]) for one in found.missing]
        devices = [msgspec.structs.replace(one, ordinal=ordinals[int(one.series)]) for one in found.devices]
        return Opened([found], CounterAccount(missing=missing, devices=devices))

    def close(self) -> None:
        for opened in (self._kernel, self._gpus):
            for source in opened.sources if opened is not None else ():
                with suppress(OSError):
                    source.close()
        self._kernel, self._in_use, self._gpus = None, ("", ()), Opened([], CounterAccount())


class MemoryBandwidth:
    """What goes between each last-level cache and memory, of the whole machine: counted by the processor itself.

    Known where resctrl is mounted (https://docs.kernel.org/filesystems/resctrl.html).
    """

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
        for file in self._files:
            file.close()


def _number(text: bytes) -> float:
    return int(text) if text.strip().isdigit() else float("nan")


_MOST_WALKED_BYTES = 4 << 30
"""numa_maps walks the page tables of the whole process; of a larger one its control group is asked."""
_PAGES = re.compile(rb" N(\d+)=(\d+)")
_PAGE_SIZE = re.compile(rb" kernelpagesize_kB=(\d+)")


class MemoryNodes:
    """Memory that processes got from a node that is not theirs."""

    def __init__(self, root: Path) -> None:
        folders = _node_folders(root)
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


def _node_folders(root: Path) -> dict[int, Path]:
    """The nodes' folders by number, of those that have cores or memory."""
    found = (root / "sys/devices/system/node").glob("node[0-9]*")
    return dict(sorted((int(path.name[4:]), path) for path in found if path.name[4:].isdigit()))


def allowed_cpus() -> Collection[int]:
    """The cores that this thread may run on; empty where the system does not tell."""
    ask = getattr(os, "sched_getaffinity", None)
    return ask(0) if ask is not None else ()


def memory_nodes(root: Path, allowed: Collection[int], resident_bytes: int) -> list[MemoryNode]:
    """The nodes as the process uses them; nothing where there is but one."""
    folders = _node_folders(root)
    if len(folders) < 2:
        return []
    used = _from_maps(root) if resident_bytes <= _MOST_WALKED_BYTES else _from_group(root)
    found = []
    for number, folder in folders.items():
        cpus = set(_cores_of(text_of(folder / "cpulist")))
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


def _cores_of(ranges: str) -> Iterator[int]:
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
