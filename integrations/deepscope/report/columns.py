"""The columns of each table of the text report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import CriticalLine, Function, HeldByLine, HeldMemory, Line, Numbers, Profile, Step
from deepscope.records.places import NO_LINE, short_place
from deepscope.report.counters import counter_columns
from deepscope.report.framework import RestRow, framework_words, rest_rows, without_framework
from deepscope.report.line_columns import FUNCTION, VERDICT, line_columns
from deepscope.report.memory import held_columns
from deepscope.report.module_columns import module_columns, module_names
from deepscope.report.operator_columns import kernel_columns, operator_columns
from deepscope.report.places import Sources
from deepscope.report.places_of_work import (
    COLLECTIVES,
    KINDS,
    STREAM_COLUMNS,
    critical_columns,
    overview_columns,
    step_columns,
    thread_columns,
)
from deepscope.report.step_times import serving_step_columns
from deepscope.report.table_column import ColumnOf, field, in_order, place_column, share_column, shares, text_columns
from deepscope.report.tables import table
from deepscope.report.terminal import Styles, TextColumn
from deepscope.report.whole_run import RUN_COLUMNS

SHOWN = ("self_device_ns", "wait_ns", "idle_ns", "self_cpu_ns", "launches")
"""The work without a line gets a row when it has one of these."""
_WHERE = (16, 0.2)
_SOURCE = (20, 0.25)
"""Cells, and a share of the width; below both the place, or the source text, is worth more than another number."""


def columns(
    by: str, rows: Sequence[Any], rest: Sequence[Any], profile: Profile, *, sort: str | None, width: int, styles: Styles
) -> list[TextColumn]:
    """The columns of the table `by` in `width` terminal cells; some tables sum up the `rest` of the rows in a last one.

    `sort` is the key of `--sort`, None for the table's own.
    """
    if by in {"line", "function"}:
        return _lines(rows, rest, profile, field=table(by).field(sort), width=width, styles=styles)
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
        place_column(profile, lambda row: row.function or NO_LINE, least=_cells(_WHERE, width)),
        ColumnOf("source", "source", "text", source, rank=source_rank, least=_cells(_SOURCE, width)),
    ]


def _cells(least: tuple[int, float], width: int) -> int:
    return max(least[0], int(least[1] * width))


def _lines(
    rows: Sequence[Line | Function],
    rest: Sequence[Line | Function],
    profile: Profile,
    *,
    field: str,
    width: int,
    styles: Styles,
) -> list[TextColumn]:
    shown: list[Any] = [without_framework(row, profile) for row in rows]
    if rest:
        shown.append(_summed_up(f"({len(rest):,} more)", [without_framework(row, profile) for row in rest]))
    shown += [row for row in rest_rows(profile) if row.name != NO_LINE or any(getattr(row, field) for field in SHOWN)]
    lines = [row for row in rows if isinstance(row, Line)]
    exact = {line.exact or line.fused for line in lines}
    place = place_column(profile, lambda row: row.name, least=_cells(_WHERE, width))
    if lines:
        sources, words = Sources(profile), framework_words(profile)

        def source(row: Line | RestRow) -> str:
            return words.get(row.name, "") if isinstance(row, RestRow) else _source(row, sources)

        names = [
            place,
            ColumnOf("marks", "", "text", lambda row: _marks(row, is_mixed=len(exact) > 1)),
            *([FUNCTION] if True in exact else []),  # else the function is the source
            ColumnOf("source", "source", "text", source, least=_cells(_SOURCE, width)),
        ]
    else:
        names = [place._replace(title="defined at"), FUNCTION._replace(rank=0)]
    amounts, whole = _amounts(shown, profile, field)
    numbers = [*line_columns(profile), _RANKS, VERDICT]
    return [*shares(amounts, whole, width, styles), *in_order([*numbers, *names], shown, styles)]


def _summed_up(name: str, rows: Sequence[Numbers]) -> RestRow:
    sums = {field: sum(getattr(row, field) for row in rows) for field in Numbers.__struct_fields__}
    if len(rows) > 1:
        sums["total_device_ns"] = sums["total_cpu_ns"] = 0  # totals overlap: their sum means nothing
    return RestRow(name=name, **sums)


def _source(line: Line, sources: Sources) -> str:
    if line.exact or line.fused:
        return sources.text(line)
    # A function's first line says little (it may be a decorator): its name says what the numbers are of.
    return line.function if line.function.startswith("<") else f"def {line.function}"  # <module>, <lambda>


def _marks(row: Line | RestRow, *, is_mixed: bool) -> str:
    if isinstance(row, RestRow):
        return ""
    of_function = is_mixed and not (row.exact or row.fused)
    return "~" * of_function + "c" * row.in_compiled_region + "f" * bool(row.shared_ns)


_PART_OF = {"total_device_ns": "self_device_ns", "total_cpu_ns": "self_cpu_ns", "forward": "self_device_ns"}
"""Totals overlap: they are parts of what all self times are."""


def _amounts(rows: Sequence[Numbers], profile: Profile, field: str) -> tuple[list[int], int]:
    """What the rows are ordered by, and what all of it is; their cost where it is no amount."""
    if field == "forward":
        amounts = [row.self_device_ns - row.backward_device_ns for row in rows]
    else:
        field = field if field in Numbers.__struct_fields__ else "cost_ns"
        amounts = [getattr(row, field) for row in rows]
    part_of = _PART_OF.get(field, field)
    return amounts, sum(getattr(row, part_of) for row in (*profile.lines, profile.no_line))


def _spread(row: Line | RestRow) -> str:
    """Self time on the fastest and the slowest rank, which merged profiles know."""
    found = getattr(row, "spread", None) if isinstance(row, Line) else None
    return f"{time_text(found.min_ns) or 0} to {time_text(found.max_ns)}" if found and found.max_ns else ""


_RANKS = ColumnOf("ranks", "a rank", "text", _spread, rank=6, is_numeric=True)
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
        ColumnOf("name", "phase", "text", lambda row: row.name, least=_WHERE[0]),
        share_column("wall_ns", sum(phase.wall_ns for phase in profile.phases), ""),
        field("wall_ns", "time", "time"),
        ColumnOf("per_step", "/step", "time", lambda row: row.wall_ns / per_step if per_step > 1 else None, rank=1),
        ColumnOf("device_ns", device, "time", lambda row: row.device_ns, rank=2),
        field("calls", "calls", "count", rank=3),
    ]
