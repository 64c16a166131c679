"""The columns of the tables of steps, the overview, threads, streams, collectives and the critical path."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from deepscope.printable import printable
from deepscope.quantities import share_text, time_text
from deepscope.records import Collective, CriticalLine, HostThread, Profile, Step, Stream
from deepscope.report.table_column import ColumnOf, field, share_column

_SECTIONS = {
    "step": "step time",
    "span": "first to last work",
    "overlap": "overlapped by compute",
    "idle": "streams' gaps",
}
_WEIGHTS = {"SM efficiency", "occupancy"}
"""Their times are weighted: only the share says something."""


def overview_columns() -> list[ColumnOf]:
    """The columns of the overview."""
    return [
        ColumnOf("section", "of", "text", lambda row: _SECTIONS.get(row.section, row.device), least=9, is_once=True),
        ColumnOf("name", "what", "text", lambda row: row.name, least=9),
        ColumnOf(
            "part",
            "share",
            "share",
            lambda row: row.time_ns / row.whole_ns if row.whole_ns else 0,
            heat=lambda row: "hot" if row.section == "step" and row.time_ns * 5 >= row.whole_ns > 0 else "",
        ),
        ColumnOf("time_ns", "time", "time", lambda row: None if row.name in _WEIGHTS else row.time_ns),
        ColumnOf("per_step", "/step", "time", lambda row: row.time_ns / row.steps if row.steps > 1 else None, rank=1),
    ]


def step_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of steps, but for what made one longer than others; times are means of the ranks."""
    ranks = max(1, profile.totals.ranks)
    device = profile.metric == "device"
    phases = dict.fromkeys(name for step in profile.steps for name in step.phases)

    def of(key: str, title: str, rank: int, explained: str) -> ColumnOf:
        return ColumnOf(key, title, "time", lambda row: getattr(row, key) / ranks, explained, rank)

    def phase(name: str, rank: int) -> ColumnOf:
        help_ = "Time of the training thread in it."
        title = printable(name)
        return ColumnOf(f"phase_{name}", title, "time", lambda row: row.phases.get(name, 0) / ranks, help_, rank)

    return [
        field("number", "step", "count", is_name=True),
        of("duration_ns", "time", 0, "From its start to its end; of several ranks the mean."),
        ColumnOf(
            "busy", "busy", "share", lambda row: _busy(row) if device else None, "How much of it some stream works.", 1
        ),
        of("device_ns", "device" if device else "operators", 2, "Work that was launched in it."),
        of("idle_ns", "idle", 3, "When no stream works."),
        of("wait_ns", "wait", 4, "The CPU waiting for the device."),
        ColumnOf(
            "slowest_rank",
            "slowest rank",
            "text",
            lambda row: str(row.spread.max_rank) if row.spread else "",
            "The rank on which it took longest.",
            5,
            is_numeric=True,
        ),
        *(phase(name, 6 + at) for at, name in enumerate(phases)),
    ]


def _busy(row: Step | Stream) -> float | None:
    whole = row.busy_ns + row.idle_ns
    return row.busy_ns / whole if whole else None


def thread_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of the threads of the CPU."""
    several = profile.totals.ranks > 1
    return [
        ColumnOf("role", "thread", "text", lambda row: _role(row, profile)),
        field("span_ns", "span", "time", "From its first event to the end of its last."),
        field("operator_ns", "operators", "time", "In operators, calls of the runtime in them left out.", 1),
        field("runtime_ns", "runtime", "time", "In calls of the device's runtime.", 3),
        field("python_ns", "python", "time", "In lines, frames or modules, and in nothing of the before.", 2),
        field("annotation_ns", "annotated", "time", "In annotations alone.", 9),
        field("rest_ns", "nothing", "time", "In nothing that is recorded.", 6),
        field("wait_ns", "wait", "time", "Waiting for the device.", 4),
        field("device_ns", "device" if profile.metric == "device" else "self", "time", "Work launched from it.", 5),
        field("launches", "launches", "count", "Kernels launched from it.", 7),
        field("runtime_calls", "calls", "count", "Of the device's runtime.", 10),
        ColumnOf("threads", "ranks", "count", lambda row: row.threads if several else None, "That have it.", 8),
        ColumnOf("thread", "tid", "text", lambda row: "" if several else row.thread, "", 8, is_numeric=True),
        ColumnOf("name", "name", "text", lambda row: row.name, "", 11, least=12),
    ]


def _role(row: HostThread, profile: Profile) -> str:
    if row.role == "training" and profile.serving:
        return "server"
    return row.role if row.role == "training" else f"{row.role} {row.number + 1}"


STREAM_COLUMNS = (
    ColumnOf("busy", "busy", "share", lambda row: _busy(row) or 0.0, "How much of the window it works."),
    field("device_ns", "work", "time", "The sum of durations."),
    field("kernel_ns", "kernels", "time", rank=1),
    field("collective_ns", "collectives", "time", rank=2),
    field("copy_ns", "copies", "time", rank=3),
    field("fill_ns", "fills", "time", rank=9),
    field("idle_ns", "idle", "time", "When it does not work.", 4),
    field("overlapped_ns", "overlapped", "time", "When another stream of the device works, too.", 5),
    field("host_wait_ns", "host wait", "time", "Gaps before work that was launched late.", 6),
    field("kernel_wait_ns", "kernel wait", "time", "Other short gaps.", 7),
    field("other_wait_ns", "other wait", "time", "All other gaps.", 8),
    ColumnOf(
        "launches",
        "launches",
        "count",
        lambda row: row.kernels + row.copies + row.fills + row.collectives,
        "Pieces of work.",
        10,
    ),
)
"""The columns of the devices' streams, behind their names."""


def outside_words(calls: int) -> str:
    """`3 calls of collectives lie outside the steps`, whose times are in no step's; "" for none."""
    if not calls:
        return ""
    return f"{'1 call of a collective lies' if calls == 1 else f'{calls:,} calls of collectives lie'} outside the steps"


def _group(row: Collective) -> str:
    """`default_pg 0-7`, or what is known of it."""
    name = row.group_description if row.group_description not in {"", "undefined"} else row.group
    who = row.group_ranks or (f"of {row.group_size}" if row.group_size else "")
    return " ".join(filter(None, (name, who)))


COLLECTIVES = (
    ColumnOf("kind", "collective", "text", lambda row: row.kind or "unknown", least=12),
    field("time_ns", "time", "time"),
    field("calls", "calls", "count"),
    ColumnOf("mean_ns", "mean", "time", lambda row: row.time_ns / row.calls if row.calls else 0, rank=4),
    ColumnOf("message_bytes", "message", "bytes", lambda row: row.bytes // row.calls if row.calls else 0, rank=1),
    field("bytes", "bytes", "bytes", rank=8),
    ColumnOf("dtype", "dtype", "text", lambda row: row.dtype, rank=7),
    field("algorithm_bytes_per_s", "algorithm B/s", "bandwidth", rank=5),
    field("bus_bytes_per_s", "bus B/s", "bandwidth", rank=2),
    ColumnOf(
        "exposed", "exposed", "share", lambda row: row.exposed_ns / row.time_ns if row.exposed_ns else None, rank=3
    ),
    field("transfer_ns", "transfer", "time", rank=6),
    field("wait_ns", "wait", "time", rank=6),
    ColumnOf("group", "group", "text", _group, rank=9, least=8),
    ColumnOf("library", "by", "text", lambda row: row.library, rank=10),
)
"""The collectives."""


KINDS = {
    "cpu_ns": "CPU",
    "data_ns": "data",
    "kernel_ns": "kernels",
    "copy_ns": "copies",
    "communication_ns": "comms",
    "launch_ns": "launch",
    "gap_ns": "gap",
    "return_ns": "return",
}
"""Fields of `CriticalTimes`, and what they are called in a table."""
_WORDS = KINDS | {
    "data_ns": "loading data",
    "communication_ns": "communication",
    "launch_ns": "launches",
    "gap_ns": "gaps between work",
    "return_ns": "returns from waits",
}
OTHERS = -1
"""The number of the row that stands for all lines beyond those of the table; 0 stands for what is on no line."""


def critical_by_line(profile: Profile) -> list[CriticalLine]:
    """The rows of the path, longest first; with what is on other lines and on none they sum to the steps."""
    found = profile.critical
    rows = list(found.lines)
    for line, function, times in ((OTHERS, "(other lines)", found.others), (0, "", found.no_line)):
        values = {name: getattr(times, name) for name in KINDS}
        if total := sum(values.values()):
            row = CriticalLine(file="", line=line, function=function, exact=False, critical_ns=total, **values)
            rows.append(row)
    return sorted(rows, key=lambda row: -row.critical_ns)


def critical_columns(profile: Profile) -> list[ColumnOf]:
    """The columns behind a line: times are means of a step."""
    found = profile.critical
    steps, evaluated = max(1, found.steps), max(1, found.evaluated_steps)

    def saved(row: CriticalLine) -> float | None:
        return None if row.would_shorten_ns is None else row.would_shorten_ns / evaluated

    def mean(field: str, title: str, rank: int = 0) -> ColumnOf:
        return ColumnOf(field, title, "time", lambda row: getattr(row, field) / steps, rank=rank)

    ranks = (2, 3, 1, 6, 4, 5, 7, 8)
    return [
        share_column("critical_ns", found.critical_ns, ""),
        mean("critical_ns", "on path"),
        # 0 is a saving, too: a line may be on the path beside another one that is as long.
        ColumnOf("would_shorten_ns", "saves", "time", saved, shows_zero=True),
        *(mean(field, title, rank) for (field, title), rank in zip(KINDS.items(), ranks, strict=True)),
    ]


def critical_entries(profile: Profile) -> Iterator[tuple[str, str]]:
    """Entries of the report's head, each a title and its printable text."""
    found = profile.critical
    if not found.critical_ns:
        return
    has_steps = bool(profile.totals.steps) or profile.step is not None
    mean = f"{time_text(found.critical_ns / found.steps)} {'a step' if has_steps else 'in all, without steps'}"
    kinds = [(words, int(getattr(found, name))) for name, words in _WORDS.items()]
    longest = sorted((one for one in kinds if one[1]), key=lambda one: -one[1])
    made_of = ", ".join(f"{words} {share_text(ns, found.critical_ns)}" for words, ns in longest)
    yield "path", f"{mean}: {made_of}"
    times = "times are means of a step" if has_steps else "times are those of the whole trace"
    if profile.totals.ranks > 1:
        times += " and rank; each rank has its own path"
    yield "", times
    if any(line.would_shorten_ns is not None for line in found.lines):
        of = f", in {found.evaluated_steps:,} of {found.steps:,} steps" if found.evaluated_steps < found.steps else ""
        yield "", f"saves: how much sooner {'a step' if has_steps else 'all'} would end if the line took no time{of}"


def without_lines(profile: Profile) -> dict[str, object]:
    """The path as JSON has it, beside the rows of its table."""
    plain: dict[str, object] = msgspec.to_builtins(profile.critical)
    del plain["lines"]
    return plain
