"""All that can be counted on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from deepscope.capture import torch_compat
from deepscope.capture.counters.container import Container, resident_bytes
from deepscope.capture.counters.devices import Adapters, AmdDevices, NvidiaDevices
from deepscope.capture.counters.numa import MemoryNodes, allowed_cpus, memory_nodes
from deepscope.capture.counters.sampler import Opened
from deepscope.capture.counters.source import CounterSource, KernelFile, NoSensorError, Series
from deepscope.trace.format.counters import CounterAccount, MissingSensor

MOST_DOMAINS = 32
"""Last-level caches that have a series of memory bandwidth."""

ROOT = Path("/")
_LONGEST = 200
"""Letters of a reason."""
_UNTOLD = "which device of the vendor's library it is cannot be told"
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
        missing = [MissingSensor(f"GPU {one.ordinal}", _UNTOLD) for one in in_use if one.number < 0]
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
