"""What is found of ranks side by side: the answer of `deepscope ranks --format json`, and of the dashboard's page.

Times are integer nanoseconds. "A step" means: per step, over the rank's recorded steps; without steps the whole trace.
Every number is defined in docs/ranks.md.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from deepscope.records import Finding

Role = Literal["data", "tensor", "pipeline", "expert", "context", "sequence", "world", ""]
"""What a process group is for; "" where it cannot be told."""

Cause = Literal["hardware", "work", "data", "host", ""]
"""Why a rank is late; "" where no cause has most of it. `hardware`: the same kernels take longer. `work`: more or
longer calls. `data`: it waits for its loader. `host`: Python and the CPU keep it."""


class RankRow(msgspec.Struct, kw_only=True):
    """One rank; times a step."""

    rank: int
    host: str = ""
    device: str = ""
    path: str = ""
    steps: int = 0
    serving_steps: int = 0
    """Steps of a server of models, which no time here is divided by: idle time between requests is part of none."""
    step_ns: int = 0
    """A step by its split, to which its parts sum; wall time where there is no split."""
    own_ns: int = 0
    """The step without the part in which only communication runs."""
    parts: dict[str, int] = {}
    """The step's split by `RanksReport.part_names`, each instant once (`docs/numbers.md`, Overview)."""
    compute_ns: int = 0
    """Device time less that of collectives; without a device operators' own time."""
    communication_ns: int = 0
    exposed_ns: int = 0
    """Of communication, what no computation overlaps."""
    overlapped_ns: int = 0
    """The rest of communication."""
    idle_ns: int = 0
    data_ns: int = 0
    sync_ns: int = 0
    peak_bytes: int = 0
    waited_ns: int | None = None
    """In matched collectives for other ranks; None where none could be matched."""
    last: int | None = None
    """Matched collectives that it came to last."""
    matched: int = 0
    """Matched collectives that it takes part in."""


class Waited(msgspec.Struct, kw_only=True):
    """What ranks waited for one that was gone."""

    waiting: str = ""
    """Ranks whose communication took longer than usual: `0-2`."""
    waited_ns: int = 0
    """By how much, summed over them; left out of their times a step."""
    longest_ns: int = 0
    """The same of the one that waited longest."""
    file: str = ""
    """The line on which that one waited; "" where it is not known."""
    line: int = 0
    function: str = ""


class EndedRank(Waited, kw_only=True):
    """A rank that lacks the last steps of the others, and what these waited for it in them."""

    rank: int
    last_step: int
    """The last one that it has."""
    last_of_others: int
    is_cut: bool = False
    """Its trace ends in the middle of an event, so that the rank itself may have gone on."""


class MissingWait(Waited, kw_only=True):
    """What all ranks here waited in their last step: none of them was late, so it was for one that is missing."""

    step: int


class Failure(msgspec.Struct, kw_only=True):
    """A rank whose trace could not be read; the others go on."""

    path: str
    rank: int | None = None
    message: str = ""


class RankClock(msgspec.Struct, kw_only=True):
    """A rank's clock beside the reference's, by the collectives that both take part in."""

    rank: int
    offset_ns: int | None = None
    """To be added to the rank's times, in the middle of these calls, to be on the reference's clock; None where no
    collective leads to it."""
    drift_ns_per_s: int = 0
    """By how much the offset grows a second; 0 where it does not for certain."""
    residual_ns: int = 0
    """How far ends of matched calls still lie apart: the median of the distances."""
    calls: int = 0


class GroupRow(msgspec.Struct, kw_only=True):
    """A process group; one that several ranks made anew under one name and with other ranks is another one."""

    name: str = ""
    description: str = ""
    role: Role = ""
    ranks: str = ""
    """`0-3, 8`."""
    size: int = 0
    here: int = 0
    """Ranks of it that were read."""
    calls: int = 0
    time_ns: int = 0
    """Over all calls and ranks, and so all sums below."""
    exposed_ns: int = 0
    bytes: int = 0
    wait_ns: int | None = None


class CollectiveRow(msgspec.Struct, kw_only=True):
    """Calls of one kind, group, type and size, matched over the ranks."""

    kind: str
    library: str = ""
    group: str = ""
    group_ranks: str = ""
    role: Role = ""
    dtype: str = ""
    size_class_bytes: int = 0
    on_device: bool = False
    ranks: int = 0
    calls: int = 0
    """Of one rank."""
    matched: int = 0
    """Calls found on every rank of the group."""
    by_sequence: bool = False
    """Matched by torch's numbers; else by order."""
    bytes: int = 0
    """Of all calls of one rank."""
    time_ns: int = 0
    """Of all calls and ranks."""
    transfer_ns: int | None = None
    """Of matched calls, the shortest over the ranks, summed over the calls."""
    wait_ns: int | None = None
    """Of matched calls and all ranks, what is longer than that."""
    spread_ns: int | None = None
    """Mean over the matched calls: from the first rank's arrival to the last one's."""
    max_spread_ns: int | None = None
    bus_bytes_per_s: int | None = None
    """By the transfer time."""
    last_rank: int | None = None
    """Which came last most often."""
    last_calls: int = 0


class PairRow(msgspec.Struct, kw_only=True):
    """Point-to-point messages from one rank to another."""

    source: int
    target: int
    messages: int = 0
    bytes: int = 0
    time_ns: int = 0
    """Of the receiving calls, or of the sending ones where only they were recorded."""
    transfer_ns: int | None = None
    """Of messages seen on both sides, the shorter call, summed."""
    bytes_per_s: int | None = None
    """Bytes of these messages by that time; where none was seen on both sides, those of `time_ns` by it."""


class DomainRow(msgspec.Struct, kw_only=True):
    """Calls of one kind in one process group, as Ascend's own tables have them: over all calls and ranks."""

    domain: str = ""
    """What the program named the group: `tp`, `dp`, `default_group`."""
    role: Role = ""
    group: str = ""
    """HCCL's number of it."""
    ranks: str = ""
    size: int = 0
    here: int = 0
    """Ranks with a table of it."""
    kind: str = ""
    calls: int = 0
    elapsed_ns: int = 0
    transit_ns: int = 0
    wait_ns: int = 0
    """For the other side."""
    synchronization_ns: int = 0
    """Of it, before the first transfer: what a late rank costs the others."""
    idle_ns: int = 0
    awaited_rank: int | None = None
    """Which waits least, and so the one that others wait for."""


class LinkRow(msgspec.Struct, kw_only=True):
    """Transfers between two ranks over one transport, as Ascend's own tables have them."""

    source: int
    target: int
    transport: str = ""
    """`HCCS`, `RDMA`, `PCIE`, `SDMA`, `SIO`."""
    domains: list[str] = []
    bytes: int = 0
    time_ns: int = 0
    bytes_per_s: int | None = None
    typical_bytes_per_s: int | None = None
    """The median of the links with this transport."""


class RankFigure(msgspec.Struct, kw_only=True):
    """A figure that a verdict rests on: the rank's, and the median of the others."""

    label: str
    kind: Literal["time", "count", "share", "ratio", "bytes"]
    value: float
    typical: float


class Straggler(msgspec.Struct, kw_only=True):
    """A rank that the others wait for; times a step."""

    rank: int
    late_calls: int = 0
    """Matched collectives that it came to last, of `calls`."""
    calls: int = 0
    late_steps: int = 0
    """Steps in which it is late, of `steps` that all ranks have; 1 of several: it was late once."""
    steps: int = 0
    excess_ns: int = 0
    """By how much its own time is above the median of the others."""
    held_ns: int = 0
    """What the other ranks wait for it, summed over them."""
    cause: Cause = ""
    hardware_ns: int = 0
    """What the lines that make it late take longer, by cause; so the next three."""
    work_ns: int = 0
    data_ns: int = 0
    host_ns: int = 0
    figures: list[RankFigure] = []
    part: str = ""
    """Of the step's split, what is longer by most."""
    part_ns: int = 0
    file: str = ""
    """The line that made it late: whose time on the critical path is above the median of the others by most. "" where
    none has a fifth of the excess."""
    line: int = 0
    function: str = ""
    text: str = ""
    line_ns: int = 0
    """By how much the line is longer than the median of the others; of a line that loader workers run, by how much
    longer the training thread waits."""
    message: str = ""
    """A sentence with the figures."""


class VaryingRow(msgspec.Struct, kw_only=True):
    """An operator or a kernel by how much it differs over the ranks; times a step."""

    kind: Literal["operator", "kernel"]
    name: str
    median_ns: int = 0
    min_ns: int = 0
    min_rank: int = 0
    max_ns: int = 0
    max_rank: int = 0
    calls_differ: bool = False
    """Whether ranks call it a different number of times a step."""


class VaryingLine(msgspec.Struct, kw_only=True):
    """A line by how much its own time differs over the ranks; times a step."""

    file: str
    line: int
    function: str = ""
    median_ns: int = 0
    min_ns: int = 0
    min_rank: int = 0
    max_ns: int = 0
    max_rank: int = 0


class RanksReport(msgspec.Struct, kw_only=True):
    """Ranks side by side."""

    path: str = ""
    project_root: str = ""
    """Where the program's project lay, which its lines are named from."""
    world_size: int = 0
    missing: str = ""
    """Ranks without a trace: `3, 8-15`."""
    failures: list[Failure] = []
    ended: list[EndedRank] = []
    """Ranks that ended before the others, the first first."""
    missing_wait: MissingWait | None = None
    """What the ranks waited at the end for one without a trace."""
    ranks: list[RankRow] = []
    """By rank."""
    part_names: list[str] = []
    slowest: list[int] = []
    """The five with the longest own time, the longest first; empty for a single rank."""
    clocks: list[RankClock] = []
    groups: list[GroupRow] = []
    collectives: list[CollectiveRow] = []
    """Of all calls, by `time_ns`, the largest first; so are pairs."""
    calls_outside_steps: int = 0
    """Calls of collectives of all ranks that were launched outside their steps; 0 without steps."""
    pairs: list[PairRow] = []
    domains: list[DomainRow] = []
    """Of Ascend devices alone, by `elapsed_ns`; so are links, by `time_ns`."""
    links: list[LinkRow] = []
    stragglers: list[Straggler] = []
    """The worst first."""
    varying: list[VaryingRow] = []
    """By `max_ns` less `min_ns`; so are lines."""
    lines: list[VaryingLine] = []
    findings: list[Finding] = []

    @property
    def has_steps(self) -> bool:
        """Whether times are of a step; else of all that was recorded, since no rank has steps."""
        return any(row.steps for row in self.ranks)
