"""The critical path: its rows by line, their columns, and what the head of the report says of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from deepscope.quantities import share_text, time_text
from deepscope.records import CriticalLine, Profile
from deepscope.report.table_column import ColumnOf, share_column

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
