"""Late ranks in words: by how much, why, and which line."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, share_text, time_text
from deepscope.ranks.results import Figure, RanksReport, Straggler
from deepscope.report.ranks.words import CAUSES, line_place

TIMES = "\N{MULTIPLICATION SIGN}"
_WHOLE_FROM = 100
"""From here on means of counts have no decimals."""


def late_entries(report: RanksReport, row: Straggler) -> Iterator[tuple[str, str]]:
    """Entries about a late rank, each a title and its printable text."""
    yield f"rank {row.rank}", printable(row.message) or late_words(row)
    if row.cause or row.figures:
        beside = [(one.label, *figure_words(one)) for one in row.figures]
        figures = "; ".join(f"{printable(label)} {value} ({typical})" for label, value, typical in beside)
        yield "  cause", ": ".join(filter(None, (CAUSES[row.cause] or "none has most of it", figures)))
    if row.part:
        yield "  part", f"{printable(row.part)}: {time_text(row.part_ns) or '0'} longer"
    if row.file:
        function = f" in {printable(row.function)}" if row.function else ""
        longer = f"{time_text(row.line_ns) or '0'} longer"
        yield "  line", f"{line_place(row, report.project_root)}{function}: {longer} than on the others"
        if row.text:
            yield "", printable(row.text.strip())


def late_words(row: Straggler) -> str:
    """How late a rank is, and how often."""
    words = f"{time_text(row.excess_ns) or '0'} later than the median of the others"
    if row.calls:
        words += f"; last to {row.late_calls:,} of {row.calls:,} collectives"
    return words + (f"; the others wait {time_text(row.held_ns)} for it" if row.held_ns else "")


def figure_words(one: Figure) -> tuple[str, str]:
    """A figure's value, and the median of the others."""
    return _number(one.value, one.kind), _number(one.typical, one.kind)


def _number(value: float, kind: str) -> str:
    if kind == "time":
        return time_text(value) or "0"
    if kind == "bytes":
        return bytes_text(value) or "0"
    if kind == "share":
        return share_text(value, 1) or "0%"
    if kind == "ratio":
        return f"{value:.2f}{TIMES}"
    return count_text(round(value)) or "0" if value == int(value) or value >= _WHOLE_FROM else f"{value:.3g}"
