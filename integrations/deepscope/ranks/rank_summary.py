"""What of a rank's profile is needed beside other ranks: small, so that a thousand ranks fit into memory."""

from __future__ import annotations

from array import array

import msgspec

from deepscope.records import Collective, CollectiveCall, CriticalPath, OverviewRow, OwnTimes, Phase, Profile, Totals
from deepscope.trace.communication import is_collective
from deepscope.trace.names import ANNOUNCEMENT


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


LINES, WORKS = 400, 400
"""Rows of each table at most, the largest ones."""


class CallColumns(msgspec.Struct, kw_only=True):
    """`Profile.collective_calls` as columns: each int64 of shape (c,), as bytes; read with `column`."""

    start_ns: bytes = b""
    end_ns: bytes = b""
    step: bytes = b""
    collective: bytes = b""
    sequence: bytes = b""
    peer: bytes = b""
    line: bytes = b""
    size_bytes: bytes = b""

    def column(self, name: str) -> memoryview:
        """One of them: int64, shape (c,). Summaries are read without NumPy, which takes it as an array."""
        return memoryview(getattr(self, name)).cast("q")


class RankLine(msgspec.Struct, array_like=True):
    """A line of one rank, as `Line` has it."""

    file: str
    line: int
    function: str
    exact: bool
    text: str
    cost_ns: int
    collective_ns: int
    self_device_ns: int
    self_cpu_ns: int
    calls: int
    launches: int
    operators: int = 0
    blocked_ns: int = 0
    loader_wait_ns: int = 0
    worker_ns: int = 0


class RankWork(msgspec.Struct, array_like=True):
    """An operator or a kernel of one rank."""

    name: str
    calls: int
    device_ns: int
    """An operator's self device time, a kernel's time."""
    cpu_ns: int
    """An operator's self CPU time; 0 for kernels."""
    collective: bool = False
    """Whether it exchanges data with other ranks, and so waits for them."""
    size: int = 0
    """What tells how large its calls are, summed over them: FLOPs, else the bytes that must be moved, of operators; of
    kernels the smallest grid and the largest; 0 where the trace does not tell."""


class RankSummary(msgspec.Struct, kw_only=True):
    """One rank. Times are sums over the whole trace, or the chosen step."""

    rank: int
    """-1 where the trace does not tell."""
    path: str
    hostname: str
    device: str
    metric: str
    world_size: int
    process_groups: int
    """How many the head of the trace lists; 0 where it lists none."""
    project_root: str
    totals: Totals
    step_ns: dict[int, int]
    """Number of a step → its duration."""
    overview: list[OverviewRow]
    phases: list[Phase]
    collectives: list[Collective]
    calls: CallColumns
    critical: CriticalPath
    lines: list[RankLine]
    """By cost, the largest first; the lines that `calls` mean are always there, under their index in the profile."""
    line_of: dict[int, int]
    """Index in `Profile.lines` → index in `lines`."""
    operators: list[RankWork]
    kernels: list[RankWork]
    device_peaks: dict[str, int]
    """Device → the most that was allocated on it at once."""
    computing_ns: int = 0
    """In the steps (without steps in all), each instant once, as are the next three; 0 without a device."""
    communication_ns: int = 0
    exposed_ns: int = 0
    wait_ns: int = 0
    own: OwnTimes | None = None
    """With indexes in `lines` in place of those in the profile."""
    steps_per_block: int = 1
    serving_steps: int = 0
    is_cut: bool = False
    """Whether its trace ends in the middle of an event."""
    ascend: AscendRank | None = None
    """What the tables beside its trace tell, of a run on Ascend devices."""


def summary_of(profile: Profile) -> RankSummary:
    """What is needed of the profile of a single rank."""
    info = profile.trace
    all_lines = profile.lines  # of an encoded profile they are decoded for this
    chosen = sorted(range(len(all_lines)), key=lambda index: -all_lines[index].cost_ns)[:LINES]
    computing_ns, communication_ns, exposed_ns, wait_ns = _in_steps(profile)
    own = profile.own_times
    if own is not None:
        chosen = list(dict.fromkeys([*chosen, *(row.line for row in own.lines if row.line >= 0)]))
    place_of = {index: place for place, index in enumerate(chosen)}
    lines = [all_lines[index] for index in chosen]
    return RankSummary(
        rank=info.ranks[0] if info.ranks else -1,
        path=info.path,
        hostname=info.hostname,
        device=info.device,
        metric=profile.metric,
        world_size=info.world_size,
        is_cut=info.truncated,
        process_groups=info.process_groups,
        project_root=info.project_root,
        totals=profile.totals,
        step_ns={step.number: step.duration_ns for step in profile.steps},
        overview=profile.overview,
        phases=profile.phases,
        collectives=profile.collectives,
        calls=columns_of(profile.collective_calls),
        critical=profile.critical,
        lines=[
            RankLine(
                one.file, one.line, one.function, one.exact, one.text or "", one.cost_ns, one.collective_ns,
                one.self_device_ns, one.self_cpu_ns, one.calls, one.launches, one.operators, one.blocked_ns,
                one.loader_wait_ns, one.worker_ns,
            )
            for one in lines
        ],
        line_of=place_of,
        operators=[
            RankWork(
                one.name, one.calls, one.self_device_ns, one.self_cpu_ns, _exchanges(one.name),
                one.flops or one.moved_bytes,
            )
            for one in profile.operators[:WORKS]
        ],
        device_peaks={one.device: one.largest_peak_bytes for one in profile.memory.devices},
        kernels=[
            RankWork(
                one.name, one.calls, one.device_ns, 0, one.kind == "collective",
                (one.min_blocks + one.max_blocks) * one.calls,
            )
            for one in profile.kernels[:WORKS]
        ],
        own=None if own is None else _placed(own, place_of),
        steps_per_block=profile.steps_per_block,
        serving_steps=len(profile.serving_steps),
        computing_ns=computing_ns,
        communication_ns=communication_ns,
        exposed_ns=exposed_ns,
        wait_ns=wait_ns,
    )  # fmt: skip


def _in_steps(profile: Profile) -> tuple[int, int, int, int]:
    """What devices compute, what they exchange, what of that nothing hides, and how long threads wait for them."""
    steps = profile.steps
    if steps:
        return (
            sum(step.computing_ns for step in steps),
            sum(step.communication_ns for step in steps),
            sum(step.exposed_ns for step in steps),
            sum(step.wait_ns for step in steps),
        )
    spans = {(row.section, row.name): row for row in profile.overview}
    compute, overlap = spans.get(("span", "compute")), spans.get(("overlap", "communication"))
    communication_ns = overlap.whole_ns if overlap else sum(row.time_ns for row in profile.collectives)
    hidden_ns = overlap.time_ns if overlap else sum(row.time_ns - row.exposed_ns for row in profile.collectives)
    communication_ns = min(communication_ns, profile.totals.wall_ns)
    exposed_ns = max(communication_ns - hidden_ns, 0)
    return compute.time_ns if compute else 0, communication_ns, exposed_ns, profile.totals.wait_ns


def _exchanges(operator: str) -> bool:
    return operator == ANNOUNCEMENT or "c10d" in operator or is_collective(operator)


def _placed(own: OwnTimes, place_of: dict[int, int]) -> OwnTimes:
    rows = [msgspec.structs.replace(row, line=place_of.get(row.line, row.line)) for row in own.lines]
    return msgspec.structs.replace(own, lines=rows)


def columns_of(calls: list[CollectiveCall]) -> CallColumns:
    """The calls as columns."""
    names = [field.name for field in msgspec.structs.fields(CallColumns)]
    return CallColumns(**{name: array("q", [getattr(call, name) for call in calls]).tobytes() for name in names})
