"""The distributed page: ranks side by side, as `deepscope ranks` has them (docs/ranks.md), and one rank in detail."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import (
    CellKind,
    Choice,
    Figure,
    PageAnswer,
    Table,
    in_page_words,
    table_of,
    whole_place,
    word,
)
from deepscope.ranks.rank_detail import NumberComparison, rank_detail
from deepscope.ranks.ranks_report import PairRow, RanksReport, Straggler
from deepscope.report.ranks.detail import NUMBERS, collectives_beside, lines_beside, rank_sentence, work_beside
from deepscope.report.ranks.heat_map import LEVELS
from deepscope.report.ranks.sentences import CAUSES, answer, figure_words, late_words, median_own
from deepscope.report.ranks.tables import (
    CLOCK_COLUMNS,
    COLLECTIVE_COLUMNS,
    DOMAIN_COLUMNS,
    GROUP_COLUMNS,
    LINK_COLUMNS,
    PAIR_COLUMNS,
    VARYING_COLUMNS,
    line_columns,
    rank_numbers,
)
from deepscope.report.table_column import ColumnOf, field

PAIRS = 500
_EVERY = 1 << 20
_RANK = ColumnOf("rank", "rank", "text", lambda row: f"rank {row.rank}")


def _from_to(key: str) -> ColumnOf:
    return ColumnOf(key, "from, to", "text", lambda row: f"rank {row.source} → rank {row.target}")


_PAIR = (_from_to("pair"), *PAIR_COLUMNS)
_CLOCK_STATE = ColumnOf(
    "state",
    "note",
    "text",
    lambda row: "not aligned: no collective leads to it" if row.offset_ns is None else "",
    rank=2,
)
_FUNCTION = field("function", "function", "text", rank=4)
LATE = 5
MATRIX_RANKS = 32
"""Of so many ranks at most the messages are shown as a matrix; of more the largest pairs."""
FAILURES = 100


class LateFigure(PageAnswer):
    """A figure that a cause rests on, in words."""

    label: str
    value: str
    typical: str
    """The median of the others."""


class LateRank(PageAnswer):
    """A rank that the others wait for; times a step."""

    rank: int
    message: str
    excess_ns: int
    """By how much it is later than the median of the others."""
    cause: str
    """In words; "" where none has most of it."""
    figures: list[LateFigure]
    part: str
    part_ns: int
    file: str
    """Of the line that made it late; "" where none has a good part of it."""
    line: int
    place: str
    function: str
    source: str
    line_ns: int


class RankFailure(PageAnswer):
    """A trace that could not be used."""

    path: str
    rank: int | None
    message: str


class PairMatrix(PageAnswer):
    """Point-to-point messages: a row for each sender, a column for each receiver."""

    ranks: list[int]
    bytes: list[list[int]]
    times_ns: list[list[int]]


class Distributed(PageAnswer):
    """Ranks side by side. What is by rank stands in the order of `ranks`."""

    sentence: str
    figures: list[Figure]
    ranks: list[int]
    has_steps: bool
    """Whether times are of a step; else of all that was recorded, since no rank has steps."""
    hosts: list[str]
    host_of: list[int]
    """Of each rank the number of its host in `hosts`."""
    own_ns: list[int]
    """A step without the part in which only communication runs."""
    median_own_ns: int
    levels: list[int]
    """Percent above the median from which on a cell is darker, the least first."""
    part_names: list[str]
    parts: list[list[int]]
    """The step of each rank by `part_names`, each instant once."""
    table: Table
    slowest: list[int]
    """The ranks with the longest own time, the longest first; empty for a single rank."""
    stragglers: list[LateRank]
    """The worst first."""
    stragglers_left_out: int
    world_size: int
    missing: str
    """Ranks of the run of which there is no trace: `3, 8-15`."""
    failures: list[RankFailure]
    failures_left_out: int
    knows_waits: bool
    """Whether calls of collectives could be matched over the ranks."""
    groups: Table
    collectives: Table
    domains: Table
    """Of Ascend clusters: communication by process group, as the profiler's own tables have it."""
    links: Table
    """The same of transfers from rank to rank."""
    matrix: PairMatrix | None
    pairs: Table
    clocks: Table
    varying: Table
    lines: Table
    """Lines by how much their own time differs between ranks."""


def distributed(library: Library, question: Choice) -> Distributed:
    """Ranks side by side, and which one is late."""
    report = library.ranks(question).report
    hosts = {host: place for place, host in enumerate(dict.fromkeys(row.host for row in report.ranks))}
    return Distributed(
        sentence=in_page_words(answer(report)),
        figures=_figures(report),
        ranks=[row.rank for row in report.ranks],
        has_steps=report.has_steps,
        hosts=[word(host) for host in hosts],
        host_of=[hosts[row.host] for row in report.ranks],
        own_ns=[row.own_ns for row in report.ranks],
        median_own_ns=int(median_own(report)),
        levels=[round(100 * least) for least, _ in reversed(LEVELS)],
        part_names=[word(name) for name in report.part_names],
        parts=[[row.parts.get(name, 0) for name in report.part_names] for row in report.ranks],
        table=table_of(
            "ranks", "Ranks", [_RANK, *rank_numbers(report)], report.ranks, keys=lambda row: str(row.rank), limit=_EVERY
        ),
        slowest=report.slowest,
        stragglers=[_late_rank(one, report.project_root) for one in report.stragglers[:LATE]],
        stragglers_left_out=max(len(report.stragglers) - LATE, 0),
        world_size=report.world_size,
        missing=word(report.missing),
        failures=[
            RankFailure(path=word(one.path), rank=one.rank, message=word(one.message))
            for one in report.failures[:FAILURES]
        ],
        failures_left_out=max(len(report.failures) - FAILURES, 0),
        knows_waits=any(row.waited_ns is not None for row in report.ranks),
        groups=table_of("rank_groups", "Process groups", GROUP_COLUMNS, report.groups),
        collectives=table_of("rank_collectives", "Collectives", COLLECTIVE_COLUMNS, report.collectives),
        domains=table_of("rank_domains", "Communication by domain", DOMAIN_COLUMNS, report.domains),
        links=table_of("rank_links", "Links", [_from_to("link"), *LINK_COLUMNS], report.links),
        matrix=_matrix(report.pairs),
        pairs=table_of("rank_pairs", "Point to point", _PAIR, report.pairs, limit=PAIRS),
        clocks=table_of("rank_clocks", "Clocks", [_RANK, *CLOCK_COLUMNS, _CLOCK_STATE], report.clocks, limit=_EVERY),
        varying=table_of("rank_varying", "What varies over the ranks", VARYING_COLUMNS, report.varying),
        lines=table_of("spread_lines", "Lines that differ between ranks", line_columns(report), report.lines),
    )


def _late_rank(of: Straggler, root: str) -> LateRank:
    """A late rank as the pages show it."""
    return LateRank(
        rank=of.rank,
        message=in_page_words(of.message or late_words(of)),
        excess_ns=of.excess_ns,
        cause=CAUSES[of.cause],
        figures=[
            LateFigure(label=word(one.label), value=in_page_words(value), typical=in_page_words(typical))
            for one in of.figures
            for value, typical in [figure_words(one)]
        ],
        part=word(of.part),
        part_ns=of.part_ns,
        file=of.file,
        line=of.line,
        place=whole_place(of.file, of.line, root) if of.file else "",
        function=word(of.function),
        source=word(of.text.strip()),
        line_ns=of.line_ns,
    )


def _figures(report: RanksReport) -> list[Figure]:
    rows = report.ranks
    count = len(rows)
    communication = sum(row.communication_ns for row in rows)
    exposed = sum(row.exposed_ns for row in rows)
    own = [row.own_ns for row in rows]
    step, unit = ("step", "a step and rank") if report.has_steps else ("time", "a rank")
    found = [
        Figure("ranks", len(rows), "count", "Of which there is a trace."),
        Figure(
            f"{step}, slowest rank",
            max(row.step_ns for row in rows),
            "time",
            "The longest mean length of a step." if step == "step" else "The longest recording of a rank.",
        ),
        Figure(
            "own time, spread",
            max(own) - min(own),
            "time",
            f"Between the ranks with the longest and the shortest {step}, communication left out.",
        ),
        Figure("communication", communication // count, "time", f"Time in collectives, {unit}."),
        Figure(
            "exposed",
            exposed / communication if communication else 0,
            "share",
            "Of the time in collectives, what no computation overlaps.",
        ),
        Figure(
            "waiting for others",
            sum(row.waited_ns or 0 for row in rows) // count,
            "time",
            f"In collectives, until the last rank has come; {unit}.",
        ),
        Figure(
            "calls outside the steps",
            report.calls_outside_steps,
            "count",
            "Calls of collectives that lie outside the steps, of all ranks: they may be longer than a step.",
        ),
    ]
    return [one for one in found if one.value]


def _matrix(pairs: Sequence[PairRow]) -> PairMatrix | None:
    ranks = sorted({rank for row in pairs for rank in (row.source, row.target)})
    if not ranks or len(ranks) > MATRIX_RANKS:
        return None
    at = {rank: place for place, rank in enumerate(ranks)}
    sizes, times = ([[0] * len(ranks) for _ in ranks] for _ in range(2))
    for row in pairs:
        sizes[at[row.source]][at[row.target]] += row.bytes
        times[at[row.source]][at[row.target]] += row.time_ns
    return PairMatrix(ranks=ranks, bytes=sizes, times_ns=times)


class RankChoice(Choice, kw_only=True, frozen=True):
    """A rank among those of the chosen run."""

    of: int = 0


class BesideNumber(PageAnswer):
    """A number of the rank, and the median of the others."""

    label: str
    kind: CellKind
    value: int | None
    typical: int | None


class RankPage(PageAnswer):
    """A rank in detail; times a step, each beside the median of the others."""

    rank: int
    has_steps: bool
    """Whether times are of a step; else of all that was recorded."""
    host: str
    device: str
    trace: str
    sentence: str
    late: LateRank | None
    numbers: list[BesideNumber]
    parts: list[BesideNumber]
    """The parts of its step."""
    lines: Table
    collectives: Table
    comes_last: Table
    """Collectives that it comes last to more often than any other rank."""
    pairs: Table
    work: Table
    offset_ns: int | None
    """Of its clock; None where that is not known."""
    residual_ns: int | None


def rank(library: Library, question: RankChoice) -> RankPage:
    """A rank in detail."""
    found = library.ranks(question)
    detail = rank_detail(found.summaries, found.report, question.of)
    clock = detail.clock if detail.clock is not None and detail.clock.offset_ns is not None else None
    numbers = [one for one in detail.numbers if not one.name.startswith("part: ")]
    work_title = "Operators and kernels that differ most" if detail.others else "The largest operators and kernels"
    return RankPage(
        rank=detail.row.rank,
        has_steps=found.report.has_steps,
        host=word(detail.row.host),
        device=word(detail.row.device),
        trace=word(detail.path),
        sentence=in_page_words(rank_sentence(detail, found.report)),
        late=_late_rank(detail.straggler, found.report.project_root) if detail.straggler is not None else None,
        numbers=[_number(NUMBERS.get(one.name, one.name).strip(), one) for one in numbers],
        parts=[_number(word(one.name.removeprefix("part: ")), one) for one in detail.numbers[len(numbers) :]],
        lines=table_of("rank_lines", "Lines on the critical path", [*lines_beside(detail), _FUNCTION], detail.lines),
        collectives=table_of("rank_own_collectives", "Its collectives", collectives_beside(detail), detail.collectives),
        comes_last=table_of("rank_comes_last", "Collectives", COLLECTIVE_COLUMNS, detail.late),
        pairs=table_of("rank_own_pairs", "Point to point", _PAIR, detail.pairs),
        work=table_of("rank_work", work_title, work_beside(detail), detail.work),
        offset_ns=clock.offset_ns if clock is not None else None,
        residual_ns=clock.residual_ns if clock is not None else None,
    )


def _number(label: str, of: NumberComparison) -> BesideNumber:
    return BesideNumber(label=label, kind=of.kind, value=of.value, typical=of.typical)
