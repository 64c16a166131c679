"""One rank beside the median of the others, on the distributed page."""

from __future__ import annotations

from deepscope.dashboard.answer import CellKind, Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.distributed import LateRank, late_rank
from deepscope.dashboard.pages.rank_tables import collectives_table, pairs_table
from deepscope.dashboard.pages.tables import table_of
from deepscope.dashboard.pages.words import in_page_words, word
from deepscope.ranks.detail import CollectiveBeside, LineBeside, RankDetail, WorkBeside, rank_detail
from deepscope.report.event_names import readable
from deepscope.report.ranks.detail import NUMBERS, rank_sentence
from deepscope.report.ranks.tables import line_column
from deepscope.report.table_column import ColumnOf


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
        collectives=_collectives(detail),
        comes_last=collectives_table(detail.late, "rank_comes_last"),
        pairs=pairs_table(detail.pairs, "rank_own_pairs"),
        work=_work(detail),
        offset_ns=clock.offset_ns if clock is not None else None,
        residual_ns=clock.residual_ns if clock is not None and is_known else None,
    )


Beside = LineBeside | CollectiveBeside | WorkBeside


def _beside(detail: RankDetail) -> list[ColumnOf]:
    here = ColumnOf("value_ns", "here", "time", lambda row: row.value, "A step.", rank=1)
    if not detail.others:
        return [here]
    return [
        ColumnOf("more_ns", "more", "time", lambda row: row.value - row.typical, "Than the median of the others."),
        here,
        ColumnOf("typical_ns", "others", "time", lambda row: row.typical, "Their median, a step.", rank=2),
    ]


def _calls(*, rank: int) -> list[ColumnOf]:
    help_text = "The median of the others, a step."
    return [
        ColumnOf("calls", "calls", "count", lambda row: row.calls, "A step.", rank=3),
        ColumnOf("typical_calls", "their calls", "count", lambda row: row.typical_calls, help_text, rank=rank),
    ]


def _lines(detail: RankDetail) -> Table:
    columns = [
        line_column(detail.project_root),
        *_beside(detail),
        ColumnOf("function", "function", "text", lambda row: row.function, rank=4),
        ColumnOf("text", "source", "text", lambda row: row.text, rank=3),
    ]
    return table_of("rank_lines", "Lines on the critical path", columns, detail.lines)


def _collectives(detail: RankDetail) -> Table:
    columns = [
        ColumnOf("kind", "collective", "text", lambda row: row.kind or "unknown"),
        ColumnOf("group", "group", "text", lambda row: row.group, rank=4),
        ColumnOf("dtype", "type", "text", lambda row: row.dtype, rank=6),
        ColumnOf("size", "size", "bytes", lambda row: row.size_class_bytes, "Of a message, at least.", rank=5),
        *_beside(detail),
        *_calls(rank=7),
    ]
    return table_of("rank_own_collectives", "Its collectives", columns, detail.collectives)


def _work(detail: RankDetail) -> Table:
    columns = [
        ColumnOf("name", "operator or kernel", "text", lambda row: readable(row.name)),
        *_beside(detail),
        *_calls(rank=4),
    ]
    title = "Operators and kernels that differ most" if detail.others else "The largest operators and kernels"
    return table_of("rank_work", title, columns, detail.work)
