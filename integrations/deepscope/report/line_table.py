"""The tables of lines and functions: their columns, the rows of what no line has, and the source texts that ran.

What a training framework costs on its own account is a row of its own, no part of the line that calls it.
"""

from __future__ import annotations

import hashlib
import stat
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import Costs, Function, Line, Metric, Numbers, Profile, cost_ns
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import source_lines
from deepscope.report.table_column import ColumnOf, Unit, in_order, place_column, shares
from deepscope.report.terminal import Styles, TextColumn

SHOWN = ("self_device_ns", "wait_ns", "idle_ns", "self_cpu_ns", "launches")
"""The work without a line gets a row when it has one of these."""
_PART_OF = {"total_device_ns": "self_device_ns", "total_cpu_ns": "self_cpu_ns", "forward": "self_device_ns"}
"""Totals overlap: they are parts of what all self times are."""
PARTS = 4
"""Parts that are named."""
LARGEST_BYTES = 32 << 20
"""Of a source file that is read."""
Row = TypeVar("Row", bound=Numbers)


def line_text_columns(
    rows: Sequence[Line | Function],
    rest: Sequence[Line | Function],
    profile: Profile,
    *,
    field: str,
    width: int,
    styles: Styles,
) -> list[TextColumn]:
    """The columns for a terminal of so many cells, of rows that are ordered by `field`; the `rest` is summed up."""
    shown: list[Any] = [without_framework(row, profile) for row in rows]
    if rest:
        shown.append(_summed_up(f"({len(rest):,} more)", [without_framework(row, profile) for row in rest]))
    shown += [row for row in rest_rows(profile) if row.name != NO_LINE or any(getattr(row, field) for field in SHOWN)]
    lines = [row for row in rows if isinstance(row, Line)]
    exact = {line.exact or line.fused for line in lines}
    place = place_column(profile, lambda row: row.name, least=place_cells(width))
    if lines:
        sources, words = Sources(profile), framework_words(profile)

        def source(row: Line | RestRow) -> str:
            return words.get(row.name, "") if isinstance(row, RestRow) else _source(row, sources)

        names = [
            place,
            ColumnOf("marks", "", "text", lambda row: _marks(row, is_mixed=len(exact) > 1)),
            *([FUNCTION] if True in exact else []),  # else the function is the source
            ColumnOf("source", "source", "text", source, least=source_cells(width)),
        ]
    else:
        names = [place._replace(title="defined at"), FUNCTION._replace(rank=0)]
    amounts, whole = _amounts(shown, profile, field)
    numbers = [*line_columns(profile), _RANKS, VERDICT]
    return [*shares(amounts, whole, width, styles), *in_order([*numbers, *names], shown, styles)]


def place_cells(width: int) -> int:
    """The least cells of a column of places, in a table of this width; then it is worth more than another number."""
    return max(16, int(0.2 * width))


def source_cells(width: int) -> int:
    """The same of a column of source texts."""
    return max(20, int(0.25 * width))


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
VERDICT = ColumnOf("verdict", "why", "text", lambda row: getattr(row, "verdict", ""), rank=2)
FUNCTION = ColumnOf("function", "function", "text", lambda row: getattr(row, "function", ""), rank=20, least=12)
"""Of lines; other rows have none."""


def line_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of numbers, of which rows without the framework's own part are asked."""
    costs = Costs.of(profile)
    device = profile.metric == "device"
    has_backward = any(row.backward_device_ns for row in (*profile.lines, profile.no_line))
    in_steps = costs.steps * costs.ranks > 1

    def forward(row: Numbers) -> int:
        return row.self_device_ns - row.backward_device_ns if has_backward else 0

    return [
        *_costs(profile.metric),
        ColumnOf(
            "per_step",
            "/step",
            "time",
            lambda row: costs.per_step_ns(row) if in_steps else 0,
            "The cost in a step of a rank, without work outside the steps.",
            5,
        ),
        _number("total", "total", ("total_device_ns",), "Self time here and in all that is called.", 9, is_sum=False),
        ColumnOf("forward", "forward", "time", forward, "The part of the self time in forward passes.", 6),
        _number("backward", "backward", ("backward_device_ns",), "The part of the self time in backward passes.", 2),
        _number("wait", "wait", ("wait_ns",), "CPU time in calls that wait for the device.", 4),
        _number("idle", "idle", ("idle_ns",), "The device idle while the training thread was on this line.", 2),
        *(
            []
            if device
            else [_number("python", "python", ("python_ns",), "The interpreter's own time, or its waiting.", 2)]
        ),
        _number("cpu", "CPU", ("self_cpu_ns",), "CPU time on this line, without the lines it calls.", 7),
        _number(
            "cpu_total", "CPU total", ("total_cpu_ns",), "CPU time with the lines that it calls.", 17, is_sum=False
        ),
        _number("calls", "calls", ("calls",), "How often the line was entered.", 6, kind="count"),
        _number("launches", "launches", ("launches",), "Kernels that were launched here.", 8, kind="count"),
        _number("comms", "comms", ("collective_exposed_ns",), "Collectives that no other kernel hides.", 10),
        _number("copies", "copies", ("h2d_ns", "d2h_ns", "d2d_ns"), "Copies to, from and on the device.", 14),
        _number("allocated", "memory", ("bytes_allocated",), "Memory allocated here, in all.", 11, kind="bytes"),
        _number("peak", "at peak", ("peak_bytes",), "What was allocated here and live at the peak.", 13, kind="bytes"),
        _number("flops", "FLOPs", ("flops",), "Operations, from the operators' shapes.", 12, kind="flops"),
        _number("workers", "workers", ("worker_ns",), "Time in data-loader worker processes.", 15),
    ]


def _costs(metric: Metric) -> list[ColumnOf]:
    if metric == "device":
        cost = "Self time, and the device's idle time that the line is blamed for."
        own = "Device work that this line launched, backward included; each piece belongs to one line."
    else:
        cost = "Self time, and Python's own on this line."
        own = "CPU time of the operators that this line called, backward included; each belongs to one line."
    return [ColumnOf("cost", "cost", "time", cost_ns, cost), _number("self", "self", ("self_device_ns",), own, 1)]


def _number(
    key: str,
    title: str,
    fields: tuple[str, ...],
    explained: str,
    rank: int,
    *,
    kind: Unit = "time",
    is_sum: bool = True,
) -> ColumnOf:
    def value(row: Numbers) -> int:
        return sum(getattr(row, field) for field in fields)

    return ColumnOf(key, title, kind, value, explained, rank, is_sum)


def cost_share(profile: Profile) -> ColumnOf:
    """The column of a row's part of what the run costs."""
    costs = Costs.of(profile)
    return ColumnOf("share", "share", "share", costs.share, "Its part of what the run costs.", is_sum=False)


def used_columns(profile: Profile) -> list[ColumnOf]:
    """The columns that say something of any line of a profile; the cost always."""
    rows: list[Numbers] = [*profile.lines, *profile.library_lines, profile.no_line]
    return [one for one in line_columns(profile) if one.key == "cost" or any(map(one.value, rows))]


class RestRow(Numbers):
    """A row with numbers and a name in place of a line."""

    name: str


def rest_rows(profile: Profile) -> list[RestRow]:
    """What no line has: each framework's own work, and the work of no user line."""
    sums: dict[str, int] = defaultdict(int)
    for part in profile.framework:
        sums[part.framework] += part.cost_ns
    rows = [RestRow(name=f"({printable(name)})", **{"cost_ns": ns, _field(profile): ns}) for name, ns in sums.items()]
    if any(getattr(profile.no_line, field) for field in Numbers.__struct_fields__):
        rows.append(RestRow(name=NO_LINE, **asdict(profile.no_line)))
    return rows


def framework_words(profile: Profile) -> dict[str, str]:
    """`(Framework)` → what it does: `its own loops 16.2ms, logging 3.22ms`."""
    costs: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for part in profile.framework:
        costs[part.framework][part.part] += part.cost_ns
    return {f"({printable(name)})": _words(parts) for name, parts in costs.items()}


def _words(parts: dict[str, int]) -> str:
    listed = sorted(parts.items(), key=lambda item: -item[1])
    named = [f"{printable(part)} {time_text(cost_ns)}" for part, cost_ns in listed[:PARTS]]
    rest = sum(cost_ns for _, cost_ns in listed[PARTS:])
    return "its own " + ", ".join([*named, *([f"others {time_text(rest)}"] if rest else [])])


def without_framework(row: Row, profile: Profile) -> Row:
    """The row without the framework's own part of its cost."""
    if not row.framework_ns:
        return row
    field = _field(profile)
    less = {"cost_ns": row.cost_ns - row.framework_ns, field: getattr(row, field) - row.framework_ns}
    return replace(row, **less, framework_ns=0)


def _field(profile: Profile) -> str:
    """Beside the work that it owns a line costs this."""
    return "idle_ns" if profile.metric == "device" else "python_ns"


class Sources:
    """Source texts as they ran: from the trace, else from the file itself when its hash is the recorded one."""

    def __init__(self, profile: Profile) -> None:
        self._files = profile.files
        self._lines: dict[str, list[str]] = {}

    def text(self, line: Line) -> str:
        """The source line without its indentation; "" where what ran is not known for certain."""
        if line.text is not None:
            return line.text.strip()
        texts = self.whole(line.file)
        return texts[line.line - 1].strip() if 0 < line.line <= len(texts) else ""

    def whole(self, path: str) -> list[str]:
        """All lines of a file; none where what ran is not known for certain."""
        texts = self._lines.get(path)
        if texts is None:
            texts = self._lines[path] = source_lines(self._read(path))
        return texts

    def _read(self, path: str) -> str:
        recorded = self._files.get(path)
        if recorded is None:
            return ""
        if recorded.text is not None:
            return recorded.text
        try:
            content = _content(Path(path))
        except (OSError, ValueError):
            return ""
        same = hashlib.sha256(content).hexdigest() == recorded.sha256
        return content.decode("utf-8", "replace") if same else ""


def _content(path: Path) -> bytes:
    """A file's bytes; none of what a trace may name to do harm: a device, a pipe, something huge."""
    found = path.stat()
    return path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_BYTES else b""
