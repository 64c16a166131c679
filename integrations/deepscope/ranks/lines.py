"""Lines by how much their own time differs over the ranks: on the device, in operators and in Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from deepscope.ranks.own_table import LineKey, file_on_all_ranks
from deepscope.ranks.results import VaryingLine
from deepscope.ranks.summary import RankSummary

ROWS = 100


def own_lines(one: RankSummary) -> dict[LineKey, tuple[str, float]]:
    """The lines of one rank: each one's file, and its own time a step, which is its critical path less collectives."""
    steps = max(one.totals.steps, 1)
    found: dict[LineKey, tuple[str, float]] = {}
    for line in one.critical.lines:
        key = file_on_all_ranks(line.file, one.project_root), line.line, line.function
        before_ns = found[key][1] if key in found else 0.0
        found[key] = line.file, before_ns + (line.critical_ns - line.communication_ns) / steps
    return found


def varying_lines(summaries: Sequence[RankSummary]) -> list[VaryingLine]:
    """Those that differ at all, the largest difference first; a rank without a line counts as 0."""
    if len(summaries) < 2:
        return []
    found: dict[LineKey, dict[int, int]] = defaultdict(dict)
    files: dict[LineKey, str] = {}
    for one in summaries:
        for key, (file, time_ns) in own_lines(one).items():
            files.setdefault(key, file)
            found[key][one.rank] = round(time_ns)
    ranks = [one.rank for one in summaries]
    differ = [
        (key, times) for key, times in found.items() if len(set(times.values())) > 1 or len(times) < len(summaries)
    ]
    rows = [row for key, times in differ if (row := _row(files[key], key, times, ranks)).max_ns > row.min_ns]
    return sorted(rows, key=lambda row: (row.min_ns - row.max_ns, row.file, row.line, row.function))[:ROWS]


def _row(file: str, key: LineKey, times: dict[int, int], ranks: Sequence[int]) -> VaryingLine:
    of = [(times.get(rank, 0), rank) for rank in ranks]
    least, most = min(of), max(of, key=lambda one: (one[0], -one[1]))
    return VaryingLine(
        file=file,
        line=key[1],
        function=key[2],
        median_ns=int(median(time for time, _ in of)),
        min_ns=least[0],
        min_rank=least[1],
        max_ns=most[0],
        max_rank=most[1],
    )
