"""Ranks side by side for a terminal: the answer, the ranks, then what lies behind it, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from deepscope.printable import printable
from deepscope.quantities import ranges, time_text
from deepscope.ranks.ranks_report import RankRow, RanksReport
from deepscope.ranks.straggler_finding import clause
from deepscope.records.source_files import short_path
from deepscope.report.columns import outside_words
from deepscope.report.ranks.heat_map import fits, heat_map, pair_matrix
from deepscope.report.ranks.json_csv import rows_of
from deepscope.report.ranks.sentences import answer, late_entries, step_unit
from deepscope.report.ranks.tables import (
    CLOCK_COLUMNS,
    COLLECTIVE_COLUMNS,
    DOMAIN_COLUMNS,
    FROM_TO,
    GROUP_COLUMNS,
    LINK_COLUMNS,
    PAIR_COLUMNS,
    RANK,
    VARYING_COLUMNS,
    line_columns,
    rank_columns,
    slowest_first,
    straggler_columns,
)
from deepscope.report.table_column import ColumnOf, in_order
from deepscope.report.terminal import DOT, MIN_WIDTH, Styles, cut_end, cut_start, entries_text, render, shown_words

ALL_RANKS = 16
"""So many ranks have a row each; of more only the slowest."""
ROWS = {
    "straggler": 3, "group": 8, "collective": 10, "pair": 10, "clock": 5, "operator": 8, "line": 8,
    "domain": 8, "link": 8,
}  # fmt: skip
"""Rows of a section where no limit is given."""
FAILURES = 5

_NOTHING = {
    "collective": "no collectives in these traces",
    "group": "no process groups in these traces",
    "pair": "no point-to-point messages in these traces",
    "operator": "no operator or kernel differs over the ranks",
    "line": "no line differs over the ranks",
    "straggler": "no rank is later than the others",
    "clock": "the clocks of these ranks are not compared: no calls of collectives could be matched",
    "domain": "no tables of Ascend's profiler beside these traces",
    "link": "no tables of Ascend's profiler beside these traces",
}


def ranks_text(
    report: RanksReport, *, by: str | None = None, limit: int | None = None, width: int = 80, color: bool = False
) -> str:
    """The overview, or one of its tables whole, for a terminal `width` cells wide; ends in a newline.

    Args:
        report: ranks side by side.
        by: a word of `json_csv.BY` for that table alone.
        limit: rows of each table, 0 for all; None for what fits a screen, of one table for all.
        width: in terminal cells.
        color: with escape sequences of a terminal.
    """
    styles, width = Styles(color), max(MIN_WIDTH, width)
    lines = list(entries_text(head_entries(report, width), width, styles))
    if by is not None:
        lines += ["", *_table(report, by, limit or 0, width, styles)]
    else:
        lines += ["", *_answer(report, width, styles)]
        for title, about, section in _sections(report, limit, width, styles):
            lines += ["", titled(title, about, width, styles), *section]
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def _answer(report: RanksReport, width: int, styles: Styles) -> Iterator[str]:
    for line in entries_text([("", answer(report))], width + 2, styles):
        text = line.strip()
        yield styles.hot(text) if report.stragglers else styles.title(text)


def more_lines(shown: int, of: int, rest: str, styles: Styles) -> list[str]:
    """A line that says how many rows are shown, and how to see the rest; none where all are."""
    return [styles.quiet(shown_words(shown, of, rest=rest))] if shown < of else []


_Section = tuple[str, str, list[str]]


def _sections(report: RanksReport, limit: int | None, width: int, styles: Styles) -> Iterator[_Section]:
    def shown(by: str) -> tuple[Sequence[Any], list[str]]:
        rows = rows_of(report, by)
        size = ROWS[by] if limit is None else limit
        chosen = rows[:size] if size else rows
        return chosen, more_lines(len(chosen), len(rows), f"--by {by}", styles)

    def section(by: str, title: str, about: str) -> Iterator[_Section]:
        rows, more = shown(by)
        if rows:
            yield title, about, [*_rendered(report, by, rows, width, styles), *more]

    unit = step_unit(report).strip()
    yield "Ranks", f"times {unit}; own: without communication", _ranks(report, limit, width, styles)
    if heat := list(heat_map(report, width, styles)):
        yield "Own time", "each rank beside the median", heat
    late, more = shown("straggler")
    if late:
        entries = (entry for row in late for entry in late_entries(report, row))
        yield "Late ranks", f"times {unit}", [*entries_text(entries, width, styles), *more]
    yield from section("group", "Process groups", "times of all calls and ranks")
    yield from section("collective", "Collectives", "times of all calls; transfer: the shortest over the ranks")
    pairs, more = shown("pair")
    if pairs and fits(report.pairs):
        yield "Point to point", "messages of all steps", list(pair_matrix(report.pairs, width, styles))
    elif pairs:
        yield from section("pair", "Point to point", "the largest pairs")
    yield from section("domain", "Communication by domain", "as Ascend's profiler tells; times of all calls and ranks")
    yield from section("link", "Links", "as Ascend's profiler tells")
    if report.clocks:
        yield "Clocks", _clock_words(report), _clocks(report, limit, width, styles)
    yield from section("operator", "What varies over the ranks", f"times {unit}")
    yield from section("line", "Lines that differ", f"own times {unit}")
    if report.findings:
        yield "What to do", "", list(entries_text(_findings(report), width, styles))
    if report.failures:
        yield "Left out", "", list(_failures(report, limit, width, styles))


def _findings(report: RanksReport) -> Iterator[tuple[str, str]]:
    """What and what to do; a late rank's own sentence stands above."""
    known = {clause(one.message) for one in report.stragglers}
    for finding in report.findings:
        message = "" if finding.message in known else f": {finding.message}"
        yield printable(finding.code), printable(f"{finding.title}{message}")
        yield "", printable(finding.remedy.text)


def titled(title: str, about: str, width: int, styles: Styles) -> str:
    """The first line of a section, what it is about behind its title."""
    explained = cut_end(about, max(width - len(title) - 2, 1))
    return styles.heading(title) + (f"  {styles.quiet(explained)}" if about else "")


def _ranks(report: RanksReport, limit: int | None, width: int, styles: Styles) -> list[str]:
    rows = slowest_first(report)
    size = (len(rows) if len(rows) <= ALL_RANKS else len(report.slowest)) if limit is None else limit
    shown = rows[:size] if size else rows
    lines = _rendered(report, "rank", shown, width, styles)
    return [*lines, *more_lines(len(shown), len(rows), "--by rank, or -n 0", styles)]


def _clock_words(report: RanksReport) -> str:
    known = [row.residual_ns for row in report.clocks if row.offset_ns is not None]
    lost = len(report.clocks) - len(known)
    words = []
    if known:
        words.append(
            f"residual {time_text(median(known)) or '0'} at the median, {time_text(max(known)) or '0'} at most"
        )
    if lost:
        ranks = ranges([row.rank for row in report.clocks if row.offset_ns is None])
        named = f"rank{'' if lost == 1 else 's'} {ranks}"
        words.append(f"{named} not aligned" if known else f"no collective leads from rank to rank: {named} not aligned")
    return "; ".join(words)


def _clocks(report: RanksReport, limit: int | None, width: int, styles: Styles) -> list[str]:
    """All of a few ranks that are aligned, of many those whose clock is known worst."""
    every = rows = [row for row in report.clocks if row.offset_ns is not None]
    if not rows:
        return []
    if limit is None and len(rows) > ALL_RANKS:
        rows = sorted(rows, key=lambda row: (-row.residual_ns, row.rank))[: ROWS["clock"]]
    elif limit:
        rows = rows[:limit]
    more = more_lines(len(rows), len(every), "--by clock", styles)
    return [*_rendered(report, "clock", rows, width, styles), *more]


def _failures(report: RanksReport, limit: int | None, width: int, styles: Styles) -> Iterator[str]:
    size = FAILURES if limit is None else limit
    shown = report.failures[:size] if size else report.failures
    entries = []
    for one in shown:
        message = one.message if one.path and one.path in one.message else f"{short_path(one.path)}: {one.message}"
        entries.append(("trace" if one.rank is None else f"rank {one.rank}", printable(message)))
    yield from entries_text(entries, width, styles)
    yield from more_lines(len(shown), len(report.failures), "-n 0 shows all", styles)


def _table(report: RanksReport, by: str, limit: int, width: int, styles: Styles) -> list[str]:
    rows: Sequence[Any] = slowest_first(report) if by == "rank" else rows_of(report, by)
    shown: Sequence[Any] = rows[:limit] if limit else rows
    if not shown:
        return [_NOTHING[by]]
    more = more_lines(len(shown), len(rows), "-n 0 shows all", styles)
    return [*_rendered(report, by, shown, width, styles), *more]


def _rendered(report: RanksReport, by: str, rows: Sequence[Any], width: int, styles: Styles) -> list[str]:
    defined: dict[str, Sequence[ColumnOf]] = {
        "collective": COLLECTIVE_COLUMNS,
        "group": GROUP_COLUMNS,
        "pair": (*FROM_TO, *PAIR_COLUMNS),
        "line": line_columns(report),
        "operator": VARYING_COLUMNS,
        "straggler": straggler_columns(report),
        "clock": (RANK, *CLOCK_COLUMNS),
        "domain": DOMAIN_COLUMNS,
        "link": (*FROM_TO, *LINK_COLUMNS),
    }
    columns = rank_columns(report, rows, styles) if by == "rank" else in_order(defined[by], rows, styles)
    return render(columns, width, title_style=styles.title)


_LONGEST_RANGES = 40
_INDENT = 8


def head_entries(report: RanksReport, width: int) -> Iterator[tuple[str, str]]:
    """What was read: the run, its ranks, hosts and devices, and what is lacking."""
    yield "run", cut_start(printable(short_path(report.path or report.ranks[0].path)), width - _INDENT)
    here = _cut(ranges(row.rank for row in report.ranks))
    of = f" of {report.world_size:,}" if report.world_size > len(report.ranks) else ""
    parts = [f"{len(report.ranks):,}{of} ({here})"]
    if report.missing:
        parts.append(f"no trace of {_cut(report.missing)}")
    yield "ranks", DOT.join(parts)
    hosts = [host for host in dict.fromkeys(row.host for row in report.ranks) if host]
    if len(hosts) > 1:
        named = ", ".join(hosts[:3]) + (", …" if len(hosts) > 3 else "")
        yield "hosts", f"{len(hosts):,} ({printable(named)})"
    elif hosts:
        yield "host", printable(hosts[0])
    if devices := _devices(report.ranks):
        yield "device", devices
    yield "time", _time(report)
    if report.failures:
        count = len(report.failures)
        yield "failed", f"{count:,} {'trace' if count == 1 else 'traces'} could not be used; see the end"


def _cut(text: str) -> str:
    return cut_end(text, _LONGEST_RANGES)


def _devices(rows: Sequence[RankRow]) -> str:
    of: dict[str, list[int]] = {}
    for row in rows:
        of.setdefault(row.device, []).append(row.rank)
    named = {name: ranks for name, ranks in of.items() if name}
    if len(of) == 1:
        return printable(next(iter(named), ""))
    return DOT.join(f"{printable(name)} on {_cut(ranges(ranks))}" for name, ranks in list(named.items())[:4])


def _time(report: RanksReport) -> str:
    steps = [row.steps or row.serving_steps for row in report.ranks]
    times = [row.step_ns for row in report.ranks]
    least, most = (time_text(one) or "0" for one in (min(times), max(times)))
    between = f" ({least} to {most})" if least != most else ""
    middle = f"{time_text(median(times)) or '0'}{step_unit(report)}{between}"
    if not max(steps):
        return f"no steps marked{DOT}{middle}"
    count = f"{min(steps)} to {max(steps)}" if min(steps) < max(steps) else str(max(steps))
    noun = f"step{'' if count == '1' else 's'}{'' if report.has_steps else ' of a server'}"
    outside = outside_words(report.calls_outside_steps)
    return DOT.join(filter(None, (f"{count} {noun} a rank", middle, outside)))
