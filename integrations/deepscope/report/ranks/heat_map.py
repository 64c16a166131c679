"""Cells for ranks: how far each one's own time is above the median, and what each pair exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deepscope.printable import printable
from deepscope.quantities import bytes_text, ranges, time_text
from deepscope.ranks.ranks_report import PairRow, RankRow, RanksReport
from deepscope.report.ranks.sentences import median_own
from deepscope.report.terminal import Style, Styles, TextColumn, cell_len, cut_end, render

LEVELS = ((0.5, "█"), (0.25, "▓"), (0.1, "▒"), (0.05, "░"))
"""From so much above the median on, the shade of a cell; the darkest first."""
_SAME, _BELOW, _MISSING = "·", "-", "?"
_LABEL = 20
"""Width of a host's name."""
_HOSTS = 24
"""So many hosts have a row each; of more, several stand in a row."""
_ROW = 64
"""Ranks in a row where no hosts are known."""
_WIDE = 16
"""Rows of so many ranks have wide cells."""


def level(own_ns: float, median_ns: float) -> str:
    """The shade of a rank."""
    above = (own_ns - median_ns) / median_ns if median_ns else 0.0
    if above < -LEVELS[-1][0]:
        return _BELOW
    return next((shade for least, shade in LEVELS if above >= least), _SAME)


def heat_map(report: RanksReport, width: int, styles: Styles) -> Iterator[str]:
    """The lines of the map and its legend; none of a single rank."""
    if len(report.ranks) < 2:
        return
    typical = median_own(report)
    shades = {row.rank: level(row.own_ns, typical) for row in report.ranks}
    rows = list(_rows(report, width))
    indent = max(cell_len(label) for label, _ in rows) + 2
    wide = 2 if max(sum(len(block) for block in blocks) for _, blocks in rows) <= _WIDE else 1
    for label, blocks in rows:
        cells = " ".join("".join(_cell(shades.get(rank), wide, styles) for rank in block) for block in blocks)
        yield label + " " * (indent - cell_len(label)) + cells
    used = {shades.get(rank, _MISSING) for _, blocks in rows for block in blocks for rank in block}
    yield " " * indent + _legend(typical, used, styles)


def _cell(shade: str | None, wide: int, styles: Styles) -> str:
    text = shade or _MISSING
    drawn = text * wide if text in {one for _, one in LEVELS} else text.ljust(wide)
    # A blank between wide cells, so that they can be counted.
    return _styled(text, drawn, styles) + (" " if wide > 1 else "")


def _styled(shade: str, text: str, styles: Styles) -> str:
    if shade in {"█", "▓"}:
        return styles.hot(text)
    return styles.warm(text) if shade in {"▒", "░"} else styles.good(text) if shade == _BELOW else text


def _legend(typical: float, used: set[str], styles: Styles) -> str:
    known = [(shade, f"+{least:.0%}") for least, shade in reversed(LEVELS)]
    same = f"within {LEVELS[-1][0]:.0%} of the median, {time_text(typical) or '0'}"
    entries = [(_SAME, same), *known, (_BELOW, "less"), (_MISSING, "no trace")]
    return "  ".join(f"{_styled(shade, shade, styles)} {text}" for shade, text in entries if shade in used)


def _rows(report: RanksReport, width: int) -> Iterator[tuple[str, list[list[int]]]]:
    """Labels, and ranks in blocks; a block is a host, or eight ranks."""
    hosts = _hosts(report.ranks)
    if len(hosts) > 1 and len(hosts) <= _HOSTS:
        longest = max(len(ranks) for ranks in hosts.values())
        room = max(8, (width - _LABEL - 2) // 9 * 8)
        if longest <= room:
            for host, ranks in hosts.items():
                yield cut_end(printable(f"{host or '?'} {ranges(ranks)}"), _LABEL), _blocks(ranks)
            return
    whole = _all_ranks(report)
    size = next((size for size in (_ROW, 32, 16) if size + size // 8 + 8 <= width), 8)
    for first in range(0, len(whole), size):
        part = whole[first : first + size]
        yield cut_end(ranges(part), _LABEL) if len(whole) == len(part) else str(part[0]), _blocks(part)


def _all_ranks(report: RanksReport) -> list[int]:
    """Those without a trace among them, so long as these are not the most."""
    there = [row.rank for row in report.ranks]
    return list(range(report.world_size)) if report.world_size <= 4 * len(there) else there


def _blocks(ranks: Sequence[int]) -> list[list[int]]:
    return [list(ranks[first : first + 8]) for first in range(0, len(ranks), 8)]


def _hosts(rows: Sequence[RankRow]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row.host, []).append(row.rank)
    return found


LARGEST = 8
"""Ranks that a matrix can have; of more the largest pairs are listed."""


def fits(rows: Sequence[PairRow]) -> bool:
    """Whether so few ranks take part that a matrix is to be read."""
    return len(_ranks(rows)) <= LARGEST


def pair_matrix(rows: Sequence[PairRow], width: int, styles: Styles) -> Iterator[str]:
    """Two of them: the bytes that were sent, and the time that it took."""
    yield from _matrix("bytes", {(row.source, row.target): bytes_text(row.bytes) for row in rows}, rows, width, styles)
    yield ""
    yield from _matrix("time", {(row.source, row.target): time_text(row.time_ns) for row in rows}, rows, width, styles)


def _matrix(
    title: str, texts: dict[tuple[int, int], str], rows: Sequence[PairRow], width: int, styles: Styles
) -> Iterator[str]:
    ranks = _ranks(rows)
    most = max((row.time_ns for row in rows), default=0)
    hot = {(row.source, row.target) for row in rows if most and row.time_ns == most}
    columns = [TextColumn(title, [f"from {rank}" for rank in ranks], right=False)]
    for target in ranks:
        cells = [texts.get((source, target), "·") or "0" for source in ranks]
        heat: list[Style | None] = [styles.warm if (source, target) in hot else None for source in ranks]
        columns.append(TextColumn(f"to {target}", cells, styles=heat))
    yield from render(columns, width, title_style=styles.title)


def _ranks(rows: Sequence[PairRow]) -> list[int]:
    return sorted({rank for row in rows for rank in (row.source, row.target)})
