"""DeepScope's own counters in a trace: their tracks' names and units, and what the header tells of them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from deepscope.trace.format.tolerant import Count

PREFIX = "DeepScope: "
"""What the names of the counter events begin with; the track's name follows."""


RUN_ENDING = ".counters"
"""Of files with the counters of a whole run: traces of nothing else, compressed, which nobody takes for a run's own."""


class TrackFacts(NamedTuple):
    """What a track counts."""

    unit: str
    """`%`, `B`, `B/s`, `1/s`, `W`, `MHz`, `°C`, or "" for a plain number."""
    series: str
    """What its series are."""
    what: str


TRACKS = {
    "CPU": TrackFacts("%", "all, waiting for I/O, stolen", "of all cores of the machine, how much was in use"),
    "process CPU": TrackFacts("%", "process", "CPU time of the process and its threads; 100 % is one core"),
    "page faults": TrackFacts("1/s", "minor, major", "page faults of the process; a major one read from a disk"),
    "memory": TrackFacts("B", "used, process, swap, container", "memory that cannot be had without swapping"),
    "container CPU": TrackFacts("%", "used", "CPU time of the container; 100 % is one core"),
    "container periods": TrackFacts("1/s", "all, throttled", "periods of the CPU quota, and those it stopped us in"),
    "disk busy": TrackFacts("%", "disk", "time in which the disk had a request"),
    "disk queue": TrackFacts("", "disk", "requests at the disk, its queue among them"),
    "disk requests": TrackFacts("1/s", "disk", "requests that the disk has done"),
    "disk read": TrackFacts("B/s", "disk", "read from the disk"),
    "disk written": TrackFacts("B/s", "disk", "written to the disk"),
    "network received": TrackFacts("B/s", "interface", "received over the network"),
    "network sent": TrackFacts("B/s", "interface", "sent over the network"),
    "InfiniBand received": TrackFacts("B/s", "adapter and port", "received over InfiniBand, RDMA too"),
    "InfiniBand sent": TrackFacts("B/s", "adapter and port", "sent over InfiniBand, RDMA too"),
    "NUMA other node": TrackFacts("1/s", "node", "pages given on the node to processes that run on another one"),
    "memory bandwidth": TrackFacts("B/s", "cache domain", "between the last-level cache and memory"),
    "GPU busy": TrackFacts("%", "device", "time in which a kernel ran"),
    "GPU memory busy": TrackFacts("%", "device", "time in which its memory was read or written"),
    "GPU memory": TrackFacts("B", "device", "memory in use on the device, by all processes"),
    "GPU power": TrackFacts("W", "device", "power drawn"),
    "GPU SM clock": TrackFacts("MHz", "device", "clock of its multiprocessors"),
    "GPU memory clock": TrackFacts("MHz", "device", "clock of its memory"),
    "GPU temperature": TrackFacts("°C", "device", "temperature of its chip"),
    "GPU throttling": TrackFacts("", "device and reason", "1 while the reason holds its clocks down, else 0"),
    "PCIe received": TrackFacts("B/s", "device", "to the device over PCIe"),
    "PCIe sent": TrackFacts("B/s", "device", "from the device over PCIe"),
    "NVLink received": TrackFacts("B/s", "device", "to the device over NVLink"),
    "NVLink sent": TrackFacts("B/s", "device", "from the device over NVLink"),
    "CPU cores": TrackFacts("%", "core", "how much each core was in use"),
}
"""By name, in the order in which they are shown: cores last, for a machine may have hundreds."""


THROTTLE_REASONS = {
    "power cap": 0x04,
    "hardware slowdown": 0x08,
    "thermal": 0x20 | 0x40,
    "power brake": 0x80,
}
"""Why clocks may be held down while there is work, with NVML's bits (`nvmlClocksEventReasons`). What a user has set
(application clocks, sync boost) and idleness are none. The series of `GPU throttling` are a device and one of these."""


def track_title(name: str) -> str:
    """The name of a counter event's track without the prefix; "" where it is none of DeepScope's."""
    title = name.removeprefix(PREFIX)
    return title if title != name and title in TRACKS else ""


class MissingSensor(msgspec.Struct, array_like=True, frozen=True):
    """Something that could not be counted here."""

    sensor: str
    reason: str = ""


class DeviceFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What does not change of a GPU; 0 where it is not known."""

    series: str
    """As its counters' series are called."""
    name: str = ""
    bus_id: str = ""
    numa_node: int = -1
    """-1 where it is not known, or there is but one."""
    max_sm_mhz: Count = 0
    max_memory_mhz: Count = 0
    power_limit_w: float = 0.0
    slowdown_celsius: Count = 0
    """The temperature from which it clocks down."""
    ordinal: int = -1
    """Its number in the events of the trace; -1 where it is not known."""


class MemoryNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A NUMA node as the process uses it."""

    node: Count
    cpus: Count = 0
    """How many the node has."""
    allowed_cpus: Count = 0
    """On how many of them the process may run."""
    process_bytes: Count = 0
    """Memory of the process on it, when the window ended."""
    distances: list[Count] = []
    """To each of the nodes, in their order, as the firmware tells: 10 to itself. Empty where it is not known."""


class ContainerLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the process's control group may use; 0 for no limit."""

    cpus: float = 0.0
    """CPU time by time: 2.5 is two and a half cores."""
    memory_bytes: Count = 0


class CounterAccount(msgspec.Struct, omit_defaults=True):
    """What was counted beside the trace, how, and at what cost."""

    interval_ns: Count = 0
    """From sample to sample, as it was at the end."""
    samples: Count = 0
    cost_ns: Count = 0
    """CPU time of the thread that sampled."""
    cores: Count = 0
    """Of the machine."""
    missing: list[MissingSensor] = []
    """What could not be counted, and why."""
    devices: list[DeviceFacts] = []
    nodes: list[MemoryNode] = []
    """Where there is more than one."""
    container: ContainerLimits = ContainerLimits()
