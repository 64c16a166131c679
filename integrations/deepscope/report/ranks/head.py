"""The head of ranks side by side: what was read, on what, and what is lacking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.ranks.results import RankRow, RanksReport
from deepscope.records.ranges import ranges
from deepscope.report.layout import cut_end, cut_start
from deepscope.report.places import short_path
from deepscope.report.ranks.words import step_unit

DOT = " · "
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
        yield "hosts", f"{len(hosts):,} ({printable(_first(hosts))})"
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


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _devices(rows: Sequence[RankRow]) -> str:
    of: dict[str, list[int]] = {}
    for row in rows:
        of.setdefault(row.device, []).append(row.rank)
    named = {name: ranks for name, ranks in of.items() if name}
    if len(of) == 1:
        return printable(next(iter(named), ""))
    return DOT.join(f"{printable(name)} on {_cut(ranges(ranks))}" for name, ranks in list(named.items())[:4])


def _time(report: RanksReport) -> str:
    steps = [row.steps for row in report.ranks]
    times = [row.step_ns for row in report.ranks]
    least, most = (time_text(one) or "0" for one in (min(times), max(times)))
    between = f" ({least} to {most})" if least != most else ""
    middle = f"{time_text(median(times)) or '0'}{step_unit(report)}{between}"
    if not max(steps):
        return f"no steps marked{DOT}{middle}"
    count = f"{min(steps)} to {max(steps)}" if min(steps) < max(steps) else str(max(steps))
    noun = "step" if count == "1" else "steps"
    return f"{count} {noun} a rank{DOT}{middle}"
