"""The columns of each table of the text report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import Collective, CriticalLine, HeldByLine, HeldMemory, HostThread, Profile, Step
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import short_place
from deepscope.report.counters import counter_columns
from deepscope.report.critical_path import KINDS, critical_columns
from deepscope.report.line_table import Sources, line_text_columns, place_cells, source_cells
from deepscope.report.memory import held_columns
from deepscope.report.module_tree import module_columns, module_names
from deepscope.report.operator_columns import kernel_columns, operator_columns
from deepscope.report.step_table import busy_share, serving_step_columns, step_columns
from deepscope.report.table_column import ColumnOf, field, in_order, place_column, share_column, text_columns
from deepscope.report.tables import table
from deepscope.report.terminal import Styles, TextColumn
from deepscope.report.whole_run import RUN_COLUMNS


def columns(
    by: str, rows: Sequence[Any], rest: Sequence[Any], profile: Profile, *, sort: str | None, width: int, styles: Styles
) -> list[TextColumn]:
    """The columns of the table `by` in `width` terminal cells; some tables sum up the `rest` of the rows in a last one.

    `sort` is the key of `--sort`, None for the table's own.
    """
    if by in {"line", "function"}:
        return line_text_columns(rows, rest, profile, field=table(by).field(sort), width=width, styles=styles)
    if rest and by in _SUMS:
        sums = {field: sum(getattr(row, field) for row in rest) for field in _SUMS[by]}
        rows = [*rows, type(rest[0])(file="", line=-1, function=f"({len(rest):,} more)", exact=False, **sums)]
    defined: dict[str, Callable[[], Iterable[ColumnOf]]] = {
        "operator": lambda: operator_columns(profile, profile.details),
        "kernel": lambda: kernel_columns(profile),
        "module": lambda: [module_names(rows), *module_columns(profile)],
        "overview": overview_columns,
        "run": lambda: RUN_COLUMNS,
        "step": lambda: _steps(profile),
        "serving": lambda: serving_step_columns(profile),
        "phase": lambda: _phases(profile),
        "thread": lambda: thread_columns(profile),
        "stream": lambda: [*_STREAM, *STREAM_COLUMNS],
        "collective": lambda: COLLECTIVES,
        "counter": lambda: counter_columns(profile),
        "memory": lambda: [
            share_column("size_bytes", sum(row.size_bytes for row in rows), ""),
            *held_columns(),
            *_places(profile, width),
        ],
        "critical": lambda: [*critical_columns(profile), *_places(profile, width, source_rank=9)],
    }
    return (in_order if by in _NAMES_FIRST else text_columns)([*defined[by]()], rows, styles)


_NAMES_FIRST = ("overview", "run", "collective", "counter", "serving")
_SUMS = {"memory": HeldMemory.__struct_fields__, "critical": ("critical_ns", *KINDS)}
"""What a last row sums up of the rows that the limit left out."""


def _places(profile: Profile, width: int, source_rank: int = 0) -> list[ColumnOf]:
    """Where each row stands, and the source text there; rows without a file are called as their function says."""
    sources = Sources(profile)
    texts = {(line.file, line.line, line.function): sources.text(line) for line in profile.lines}

    def source(row: HeldByLine | CriticalLine) -> str:
        return texts.get((row.file, row.line, row.function), "")

    return [
        place_column(profile, lambda row: row.function or NO_LINE, least=place_cells(width)),
        ColumnOf("source", "source", "text", source, rank=source_rank, least=source_cells(width)),
    ]


_STREAM = (field("device", "device", "count", is_name=True), field("stream", "stream", "count", is_name=True))


def _steps(profile: Profile) -> list[ColumnOf]:
    found = step_columns(profile)
    longer = ColumnOf("longer", "longer than usual", "text", lambda row: _longer(row, profile), rank=len(found) - 1)
    return [*found, longer]


def _longer(step: Step, profile: Profile) -> str:
    """The line on which the training thread was longest over the median of the steps, and by how much."""
    if not step.slow_ns:
        return ""
    place = short_place(step.slow_file, step.slow_line, profile.trace.project_root)
    return printable(f"{place} +{time_text(step.slow_ns)}")


def _phases(profile: Profile) -> list[ColumnOf]:
    per_step = max(1, profile.totals.steps) * max(1, profile.totals.ranks)
    device = "device" if profile.metric == "device" else "operators"
    return [
        ColumnOf("name", "phase", "text", lambda row: row.name, least=16),
        share_column("wall_ns", sum(phase.wall_ns for phase in profile.phases), ""),
        field("wall_ns", "time", "time"),
        ColumnOf("per_step", "/step", "time", lambda row: row.wall_ns / per_step if per_step > 1 else None, rank=1),
        ColumnOf("device_ns", device, "time", lambda row: row.device_ns, rank=2),
        field("calls", "calls", "count", rank=3),
    ]


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
    ColumnOf("busy", "busy", "share", lambda row: busy_share(row) or 0.0, "How much of the window it works."),
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
