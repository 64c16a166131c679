"""What Ascend's profiler tells of a rank in its tables: steps, communication by process group, links."""

from __future__ import annotations

import msgspec


class AscendStep(msgspec.Struct, kw_only=True):
    """A row of `step_trace_time.csv`."""

    step: int = -1
    """-1 where the recording has no steps."""
    computing_ns: int = 0
    exposed_ns: int = 0
    """`Communication(Not Overlapped)`."""
    overlapped_ns: int = 0
    communication_ns: int = 0
    free_ns: int = 0
    stage_ns: int = 0
    """From the first work on the device to the last one's end, less `bubble_ns`."""
    bubble_ns: int = 0
    """In calls that receive from another pipeline stage."""
    preparing_ns: int = 0
    """From the step's start on the CPU to the first work on the device."""


class AscendGroup(msgspec.Struct, kw_only=True):
    """A process group, as `profiler_metadata.json` has it."""

    key: str
    """As the calls name it: HCCL's number of it."""
    name: str = ""
    """As the program named it: `tp`, `dp`, `default_group`."""
    ranks: list[int] = []
    """By number in the whole run, sorted: their places are the ranks in the group."""


class AscendCalls(msgspec.Struct, kw_only=True):
    """All calls of one kind in one process group, from `communication.json`."""

    group: str
    """`AscendGroup.key`."""
    kind: str
    calls: int = 0
    elapsed_ns: int = 0
    transit_ns: int = 0
    wait_ns: int = 0
    """For the other side, of which `synchronization_ns` are before the first transfer."""
    synchronization_ns: int = 0
    idle_ns: int = 0
    """The rest: between its pieces nothing was queued."""


class AscendLink(msgspec.Struct, kw_only=True):
    """Transfers from one rank to another, from `communication_matrix.json`."""

    group: str
    source: int
    """By number in the whole run, as `target`; where the group's ranks are not known, -1 less the rank in the group."""
    target: int
    transport: str = ""
    """`HCCS`, `RDMA`, `PCIE`, `SDMA`, `SIO`; `LOCAL` within a device."""
    bytes: int = 0
    time_ns: int = 0


class AscendRank(msgspec.Struct, kw_only=True):
    """A rank."""

    folder: str = ""
    steps: list[AscendStep] = []
    groups: list[AscendGroup] = []
    calls: list[AscendCalls] = []
    links: list[AscendLink] = []
