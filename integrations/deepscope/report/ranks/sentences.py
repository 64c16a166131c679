"""Sentences about ranks side by side: who ended, who is late, by how much, and where."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from statistics import median

from deepscope.printable import printable
from deepscope.quantities import number_text, share_text, time_text
from deepscope.ranks.ended_ranks import Ends, end_sentences
from deepscope.ranks.ranks_report import Cause, RankFigure, RanksReport, Straggler
from deepscope.records.source_files import short_place

CAUSES: dict[Cause, str] = {
    "hardware": "slower hardware",
    "work": "more work",
    "data": "waiting on data",
    "host": "Python and the CPU",
    "": "",
}
"""Causes of lateness as readers have them."""

_STANDS_OUT = 0.05
"""By more than this part of a step the longest own time is above the median before the sentence names its rank."""
_BEYOND_CHANCE = 4.0
"""So many standard deviations of how often chance makes a rank the last one."""
_NAMED = 3
"""So many late ranks are named one by one."""


def step_unit(report: RanksReport) -> str:
    """` a step`, or ` in all` of traces without steps: what times of this report are of."""
    return " a step" if report.has_steps else " in all"


def answer(report: RanksReport) -> str:
    """The sentences that say first what one came for: who ended, who holds the others up, by how much, and where."""
    ends = Ends(report.missing, report.ended, report.missing_wait)
    return " ".join([*end_sentences(ends, report.project_root), _of_steps(report)])


def _of_steps(report: RanksReport) -> str:
    if len(report.ranks) == 1:
        return _alone(report)
    if report.stragglers:
        return _late(report)
    own, middle = [row.own_ns for row in report.ranks], median_own(report)
    if not max(own):
        return "No rank stands out: nothing but communication was recorded."
    what = "steps" if report.has_steps else "times"
    worst = max(report.ranks, key=lambda row: row.own_ns)
    if worst.own_ns - middle > _STANDS_OUT * median(row.step_ns for row in report.ranks):
        longest = f"{time_text(worst.own_ns) or '0'} on rank {worst.rank}, {time_text(middle) or '0'} at the median"
        return f"No rank is known to hold the others up. Without communication the ranks' {what} differ: {longest}."
    steps_ns = sum(row.step_ns for row in report.ranks)
    exposed = share_text(sum(row.parts.get("communication", 0) for row in report.ranks), steps_ns)
    waits = f" Only communication runs in {exposed} of their time." if exposed else ""
    waits += _usually_last(report)
    spread = share_text(max(own) - min(own), max(own)) or "0%"
    between = f" ({time_text(min(own)) or '0'} to {time_text(max(own)) or '0'})" if max(own) > min(own) else ""
    return f"No rank stands out: without communication the ranks' {what} differ by {spread}{between}.{waits}"


def _usually_last(report: RanksReport) -> str:
    """The rank that came last to far more collectives than chance gives each; "" for none."""
    chance = 1 / len(report.ranks)
    known = [row for row in report.ranks if row.last and row.matched]
    row = max(known, key=lambda row: (row.last or 0) / row.matched, default=None)
    if row is None or row.last is None:
        return ""
    expected = row.matched * chance
    if row.last < max(row.matched / 2, expected + _BEYOND_CHANCE * sqrt(expected * (1 - chance))):
        return ""
    return (
        f" Yet rank {row.rank} usually comes last, to {row.last:,} of {row.matched:,} collectives, which is beyond "
        f"chance: it is late by less than its steps differ."
    )


def _alone(report: RanksReport) -> str:
    of = f" of {report.world_size:,}" if report.world_size > 1 else ""
    who = f"Rank {report.ranks[0].rank}{of} is the only one here"
    if not report.ranks[0].communication_ns:
        return f"{who}, and no communication was recorded: there is nothing to hold it beside."
    return f"{who}: it tells what communication costs it, and not which rank is late."


def _late(report: RanksReport) -> str:
    worst = report.stragglers[0]
    late = [one.rank for one in report.stragglers]
    who = f"Rank {worst.rank} holds the others up: it"
    if worst.calls and not worst.late_calls:
        who = f"Rank {worst.rank}"
    if len(late) > 1:
        names = f"{', '.join(map(str, late[:-1]))} and {late[-1]}" if len(late) <= _NAMED else ""
        several = f"Ranks {names}" if names else f"Rank {worst.rank} and {len(late) - 1:,} more"
        who = f"{several} hold the others up: rank {worst.rank}"
    why = f", by {CAUSES[worst.cause]}" if worst.cause else ""
    place = line_place(worst, report.project_root) if worst.file else f"“{worst.part}”" if worst.part else ""
    share = "most" if 2 * (worst.line_ns if worst.file else worst.part_ns) >= worst.excess_ns else "part"
    where = f", {share} of it in {place}" if place else ""
    excess = f"{time_text(worst.excess_ns) or '0'}{step_unit(report)}"
    never = f"; yet it came last to none of {worst.calls:,} collectives" if worst.calls and not worst.late_calls else ""
    return printable(f"{who} is {excess} later than the median of the others{where}{why}{never}.")


def line_place(of: Straggler, root: str) -> str:
    """`train.py:14`."""
    return printable(short_place(of.file, of.line, root))


def median_own(report: RanksReport) -> float:
    """The median of the ranks' own times."""
    return median(row.own_ns for row in report.ranks)


def above_text(value: float, typical: float) -> str:
    """By how much a number is above another one: `+38%`, `-4%`, `0%`; "" of nothing."""
    if not typical:
        return ""
    percent = 100 * (value - typical) / typical
    return f"{percent:+.0f}%" if round(percent) else "0%"


def group_name(name: str, description: str) -> str:
    """`default_pg`, else torch's number of the group."""
    return printable(description or name)


def collective_name(kind: str) -> str:
    """A kind of collective; what is not known is called so."""
    return printable(kind or "unknown")


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


def figure_words(one: RankFigure) -> tuple[str, str]:
    """A figure's value, and the median of the others."""
    return number_text(one.value, one.kind), number_text(one.typical, one.kind)
