"""The columns of each table of the text report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import (
    CriticalLine,
    Function,
    HeldByLine,
    HeldMemory,
    Line,
    Numbers,
    Profile,
    Step,
)
from deepscope.records.places import short_path, short_place
from deepscope.report.bars import share, shares
from deepscope.report.column_kinds import WHERE_WIDTH
from deepscope.report.column_kinds import times as _times
from deepscope.report.counters import counter_columns
from deepscope.report.critical import KINDS as CRITICAL_KINDS
from deepscope.report.framework import NO_LINE, RestRow, framework_words, rest_rows, without_framework
from deepscope.report.kernel_columns import kernel_columns
from deepscope.report.layout import Column, cut_end, cut_start
from deepscope.report.line_columns import line_columns
from deepscope.report.memory import held_columns
from deepscope.report.module_columns import module_columns, module_names
from deepscope.report.operator_columns import operator_columns
from deepscope.report.places import Sources
from deepscope.report.places_of_work import (
    STREAM_COLUMNS,
    collective_columns,
    overview_columns,
    step_columns,
    thread_columns,
)
from deepscope.report.style import Styles
from deepscope.report.table_column import ColumnOf, share_column, text_column, text_columns
from deepscope.report.tables import table

SHOWN = ("self_device_ns", "wait_ns", "idle_ns", "self_cpu_ns", "launches")
"""The work without a line gets a row when it has one of these."""
WHERE_SHARE = 0.2
SOURCE_WIDTH = 20
SOURCE_SHARE = 0.25
"""Share of the width; below it the place, or the source text, is worth more than another number."""


def columns(
    by: str,
    rows: Sequence[Any],
    rest: Sequence[Any],
    profile: Profile,
    *,
    sort: str | None,
    width: int,
    styles: Styles,
) -> list[Column]:
    """The columns of a table.

    Args:
        by: the word of `--by`.
        rows: what is shown.
        rest: the rows that the limit left out; tables of lines and functions sum them up in a last row.
        profile: where they come from.
        sort: the key of `--sort`; None for the table's own.
        width: of the whole table, in terminal cells.
        styles: how shares are coloured.
    """
    defined: dict[str, Callable[[Profile], Iterable[ColumnOf]]] = {
        "operator": lambda profile: operator_columns(profile, profile.details),
        "kernel": kernel_columns,
        "module": lambda profile: [module_names(rows), *module_columns(profile)],
        "step": _steps,
        "phase": _phases,
        "thread": thread_columns,
        "stream": lambda _: [*_STREAM, *STREAM_COLUMNS],
    }
    makers: dict[str, Callable[..., list[Column]]] = {
        "overview": overview_columns,
        "collective": collective_columns,
        "counter": counter_columns,
    }
    if by in defined:
        return text_columns(list(defined[by](profile)), rows, styles)
    if by in makers:
        return makers[by](rows, profile, styles)
    if by == "memory":
        return _memory(rows, rest, profile, width, styles)
    if by == "critical":
        return _critical(rows, rest, profile, width, styles)
    return _lines(by, rows, rest, profile, sort=sort, width=width, styles=styles)


def _critical(
    rows: Sequence[CriticalLine], rest: Sequence[CriticalLine], profile: Profile, width: int, styles: Styles
) -> list[Column]:
    shown = [*rows]
    if rest:
        fields = ("critical_ns", *CRITICAL_KINDS)
        sums = {field: sum(getattr(row, field) for row in rest) for field in fields}
        shown.append(CriticalLine(file="", line=-1, function=f"({len(rest):,} more)", exact=False, **sums))
    steps, evaluated = max(1, profile.critical.steps), max(1, profile.critical.evaluated_steps)
    # 0 is a saving, too: a line may be on the path beside another one that is as long.
    saves = [
        "" if row.would_shorten_ns is None else time_text(row.would_shorten_ns / evaluated) or "0" for row in shown
    ]
    return [
        share([row.critical_ns for row in shown], profile.critical.critical_ns, styles),
        _times("on path", [row.critical_ns / steps for row in shown]),
        Column("saves", saves),
        *(
            _times(title, [getattr(row, field) / steps for row in shown], rank=rank)
            for (field, title), rank in zip(CRITICAL_KINDS.items(), (2, 3, 1, 6, 4, 5, 7, 8), strict=True)
        ),
        *_places(shown, profile, width, source_rank=9),
    ]


def _places(
    rows: Sequence[HeldByLine] | Sequence[CriticalLine], profile: Profile, width: int, source_rank: int = 0
) -> list[Column]:
    """Where each row stands, and the source text there; rows without a file are called as their function says."""
    sources, root = Sources(profile), profile.trace.project_root
    places = [
        f"{printable(short_path(row.file, root))}:{row.line}" if row.file else row.function or NO_LINE for row in rows
    ]
    texts = {(line.file, line.line, line.function): printable(sources.text(line)) for line in profile.lines}
    source = [texts.get((row.file, row.line, row.function), "") for row in rows]
    least = max(SOURCE_WIDTH, int(SOURCE_SHARE * width))
    return [
        Column("line", places, right=False, min_width=max(WHERE_WIDTH, int(WHERE_SHARE * width)), cut=cut_start),
        Column("source", source, rank=source_rank, right=False, min_width=least, cut=cut_end),
    ]


def _lines(
    by: str,
    rows: Sequence[Line | Function],
    rest: Sequence[Line | Function],
    profile: Profile,
    *,
    sort: str | None,
    width: int,
    styles: Styles,
) -> list[Column]:
    shown: list[Any] = [without_framework(row, profile) for row in rows]
    if rest:
        shown.append(_summed_up(f"({len(rest):,} more)", [without_framework(row, profile) for row in rest]))
    shown += [row for row in rest_rows(profile) if row.name != NO_LINE or any(getattr(row, field) for field in SHOWN)]
    sources = Sources(profile)
    root = profile.trace.project_root
    where = Column(
        "line" if rows and isinstance(rows[0], Line) else "defined at",
        [
            row.name if isinstance(row, RestRow) else f"{printable(short_path(row.file, root))}:{row.line}"
            for row in shown
        ],
        right=False,
        min_width=max(WHERE_WIDTH, int(WHERE_SHARE * width)),
        cut=cut_start,
    )
    amounts, whole = _amounts(shown, profile, table(by).field(sort))
    numbers = [
        *shares(amounts, whole, width, styles),
        *(text_column(one, shown, styles) for one in line_columns(profile)),
        _ranks(shown),
        _why(shown),
    ]
    functions = ["" if isinstance(row, RestRow) else printable(row.function) for row in shown]
    if not any(isinstance(row, Line) for row in rows):
        return [*numbers, where, Column("function", functions, right=False, min_width=12, cut=cut_end)]
    least = max(SOURCE_WIDTH, int(SOURCE_SHARE * width))
    words = framework_words(profile)
    texts = [words.get(row.name, "") if isinstance(row, RestRow) else _source(row, sources) for row in shown]
    source = Column("source", texts, right=False, min_width=least, cut=cut_end)
    marks = Column("", _marks(shown), right=False)
    if any(isinstance(row, Line) and (row.exact or row.fused) for row in rows):
        named = Column("function", functions, rank=20, right=False, min_width=12, cut=cut_end)
        return [*numbers, where, marks, named, source]
    return [*numbers, where, marks, source]  # the function is the source here


def _summed_up(name: str, rows: Sequence[Numbers]) -> RestRow:
    sums = {field: sum(getattr(row, field) for row in rows) for field in Numbers.__struct_fields__}
    if len(rows) > 1:
        sums["total_device_ns"] = sums["total_cpu_ns"] = 0  # totals overlap: their sum means nothing
    return RestRow(name=name, **sums)


def _source(row: Any, sources: Sources) -> str:
    if isinstance(row, Line):
        # A function's first line says little (it may be a decorator): its name says what the numbers are of.
        return printable(sources.text(row)) if row.exact or row.fused else _definition(row)
    return ""


def _definition(line: Line) -> str:
    name = printable(line.function)
    return name if name.startswith("<") else f"def {name}"  # <module>, <lambda>


def _marks(rows: Sequence[Any]) -> list[str]:
    lines = [row for row in rows if isinstance(row, Line)]
    mixed = len({line.exact or line.fused for line in lines}) > 1
    marks = []
    for row in rows:
        is_line = isinstance(row, Line)
        function_level = "~" if is_line and mixed and not (row.exact or row.fused) else ""
        calls_compiled = "c" if is_line and row.in_compiled_region else ""
        marks.append(function_level + calls_compiled + ("f" if row.shared_ns and is_line else ""))
    return marks


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


def _ranks(rows: Sequence[Any]) -> Column:
    """Self time on the fastest and the slowest rank, which merged profiles know."""
    spreads = [row.spread if isinstance(row, Line) else None for row in rows]
    texts = [
        f"{time_text(one.min_ns) or 0} to {time_text(one.max_ns)}" if one and one.max_ns else "" for one in spreads
    ]
    return Column("a rank", texts, rank=6)


def _memory(
    rows: Sequence[HeldByLine], rest: Sequence[HeldByLine], profile: Profile, width: int, styles: Styles
) -> list[Column]:
    shown = [*rows]
    if rest:
        fields = HeldMemory.__struct_fields__
        sums = {field: sum(getattr(row, field) for row in rest) for field in fields}
        shown.append(HeldByLine(file="", line=-1, function=f"({len(rest):,} more)", **sums))
    whole = sum(row.size_bytes for row in shown)
    return [
        *text_columns([share_column("size_bytes", whole, ""), *held_columns()], shown, styles),
        *_places(shown, profile, width),
    ]


def _why(rows: Sequence[Any]) -> Column:
    """What holds each line back."""
    words = [row.verdict if isinstance(row, Line) else "" for row in rows]
    return Column("why", words, rank=2, right=False)


_STREAM = (
    ColumnOf("device", "device", "count", lambda row: row.device, is_name=True),
    ColumnOf("stream", "stream", "count", lambda row: row.stream, is_name=True),
)


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
        ColumnOf("name", "phase", "text", lambda row: row.name, least=WHERE_WIDTH),
        share_column("wall_ns", sum(phase.wall_ns for phase in profile.phases), ""),
        ColumnOf("wall_ns", "time", "time", lambda row: row.wall_ns),
        ColumnOf("per_step", "/step", "time", lambda row: row.wall_ns / per_step if per_step > 1 else None, rank=1),
        ColumnOf("device_ns", device, "time", lambda row: row.device_ns, rank=2),
        ColumnOf("calls", "calls", "count", lambda row: row.calls, rank=3),
    ]
