"""One rank beside the median of the others, on the distributed page."""

from __future__ import annotations

from deepscope.dashboard.answer import CellKind, Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.distributed import LateRank, collectives_table, late_rank, pairs_table
from deepscope.dashboard.pages.tables import in_page_words, table_of, word
from deepscope.ranks.detail import RankDetail, rank_detail
from deepscope.report.ranks.detail import NUMBERS, collectives_beside, lines_beside, rank_sentence, work_beside
from deepscope.report.table_column import field


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
    found = library.ranks(
        Choice(run=question.run, stage=question.stage, step=question.step, phase=question.phase, module=question.module)
    )
    detail = rank_detail(found.summaries, found.report, question.of)
    clock = detail.clock
    is_known = clock is not None and clock.offset_ns is not None
    numbers = [one for one in detail.numbers if not one.name.startswith("part: ")]
    return RankPage(
        rank=detail.row.rank,
        has_steps=found.report.has_steps,
        host=word(detail.row.host),
        device=word(detail.row.device),
        trace=word(detail.path),
        sentence=in_page_words(rank_sentence(detail, found.report)),
        late=late_rank(detail.straggler, found.report.project_root) if detail.straggler is not None else None,
        numbers=[
            BesideNumber(
                label=NUMBERS.get(one.name, one.name).strip(), kind=one.kind, value=one.value, typical=one.typical
            )
            for one in numbers
        ],
        parts=[
            BesideNumber(
                label=word(one.name.removeprefix("part: ")), kind=one.kind, value=one.value, typical=one.typical
            )
            for one in detail.numbers[len(numbers) :]
        ],
        lines=_lines(detail),
        collectives=table_of("rank_own_collectives", "Its collectives", collectives_beside(detail), detail.collectives),
        comes_last=collectives_table(detail.late, "rank_comes_last"),
        pairs=pairs_table(detail.pairs, "rank_own_pairs"),
        work=_work(detail),
        offset_ns=clock.offset_ns if clock is not None else None,
        residual_ns=clock.residual_ns if clock is not None and is_known else None,
    )


def _lines(detail: RankDetail) -> Table:
    columns = [*lines_beside(detail), field("function", "function", "text", rank=4)]
    return table_of("rank_lines", "Lines on the critical path", columns, detail.lines)


def _work(detail: RankDetail) -> Table:
    title = "Operators and kernels that differ most" if detail.others else "The largest operators and kernels"
    return table_of("rank_work", title, work_beside(detail), detail.work)
