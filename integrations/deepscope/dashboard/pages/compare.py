"""The comparison page: a run beside an earlier one, with what is within noise told apart."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import dropwhile
from typing import Literal

import msgspec

from deepscope import comparison as comparing
from deepscope.comparison.compare import Comparison, Difference
from deepscope.comparison.pairing import is_same_program
from deepscope.dashboard.background import NotYetError
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, PageAnswer, Table, in_page_words, table_of, title_of, word
from deepscope.errors import TraceError
from deepscope.records import Profile
from deepscope.report.comparison_report import difference_columns, noise_words, step_words, verdict_word
from deepscope.report.table_column import ColumnOf, field
from deepscope.store.runs import WINDOW_MARK

ComparedTable = Literal["line", "operator", "kernel", "module", "phase", "step"]
"""What the rows of a comparison are."""
ComparedNumber = Literal["cost", "self"]
"""What of a line is compared: what it costs the run, or its device time alone."""
RowVerdict = Literal["slower", "faster", "within noise", "new", "gone", "unknown"]
"""What has become of a row: `unknown` where nothing tells of noise."""
ROWS = 3000
"""Rows of a comparison, the largest changes beyond noise first."""
_LOOKED_AT = 8
"""Earlier runs of the same script of which one may be of the same program."""


class CompareQuestion(Choice, kw_only=True, frozen=True):
    """Which run is compared with which."""

    baseline: str = ""
    """As `Run.id` has it: the run before; "" for the one that was recorded before the chosen one."""
    by: ComparedTable = "line"
    number: ComparedNumber = "cost"


class TimeChange(PageAnswer):
    """A time a step in both runs, in nanoseconds (without steps: in all)."""

    before_ns: float
    after_ns: float
    change_ns: float
    low_ns: float | None
    """Where the true difference lies, from here to `high_ns`; None where nothing tells of the spread."""
    high_ns: float | None
    verdict: RowVerdict


class ComparedRun(PageAnswer):
    """A side of a comparison."""

    run: str
    title: str
    recorded_at: str
    steps: int


class Compared(PageAnswer, kw_only=True):
    """A run beside another one."""

    before: ComparedRun | None = None
    """None where there is no other run; then there are no rows."""
    after: ComparedRun
    by: ComparedTable
    number: ComparedNumber
    has_intervals: bool = False
    """Whether anything is known of noise."""
    step: TimeChange | None = None
    step_words: str = ""
    noise_words: str = ""
    rows: Table
    """Those beyond noise first, each part by the size of its change; rows without a change are left out."""
    beyond_noise: int = 0
    """So many of them, the first."""


def compare(library: Library, question: CompareQuestion) -> Compared:
    """What became slower or faster since another run."""
    baseline = question.baseline or _one_before(library, question)
    mine = Choice(**{name: getattr(question, name) for name in Choice.__struct_fields__})
    if not baseline:
        return Compared(
            after=_run(library, mine, library.profile(mine)),
            by=question.by,
            number=question.number,
            rows=Table(id="changes", title="", columns=[], rows=[], files=[], places=[]),
        )
    other = msgspec.structs.replace(mine, run=baseline)
    before, after = _both(library, other, mine)
    found = comparing.compare([before], [after], by=question.by, number=question.number)
    changed = [row for row in found.rows if row.change_ns]
    return Compared(
        before=_run(library, other, before),
        after=_run(library, mine, after),
        by=question.by,
        number=question.number,
        has_intervals=found.has_intervals,
        step=_change(found.step),
        step_words=in_page_words(step_words(found)),
        noise_words=in_page_words(noise_words(found)),
        rows=_table(found, changed),
        beyond_noise=sum(not row.within_noise for row in changed[:ROWS]),
    )


def _one_before(library: Library, question: Choice) -> str:
    """The run of the same program that was recorded before the chosen one; "" for none."""
    chosen = library.run(question)
    if chosen.window is not None:
        windows = library.run(Choice(run=chosen.base)).windows
        earlier = [number for number in windows if number < chosen.window]
        if earlier:
            return f"{chosen.base}{WINDOW_MARK}{max(earlier)}"
    older = list(dropwhile(lambda one: one.id != chosen.base, library.runs()))[1:]
    alike = [one for one in older if one.program == chosen.program != ""]
    mine = library.profile(question) if alike else None
    for one in alike[:_LOOKED_AT]:
        with suppress(TraceError):
            if mine is not None and is_same_program(library.profile(Choice(run=one.id)), mine):
                return one.id
    return ""


def _both(library: Library, before: Choice, after: Choice) -> tuple[Profile, Profile]:
    """Both profiles, read at one time."""
    found: list[Profile] = []
    done = total = 0
    for choice in (before, after):
        try:
            found.append(library.profile(choice))
        except NotYetError as error:
            done, total = done + error.done, total + error.total
    if len(found) < 2:
        raise NotYetError(done, total)
    return found[0], found[1]


def _run(library: Library, choice: Choice, profile: Profile) -> ComparedRun:
    return ComparedRun(
        run=library.run(choice).id,
        title=title_of(profile),
        recorded_at=word(profile.trace.recorded_at),
        steps=profile.totals.steps,
    )


def _change(row: Difference) -> TimeChange:
    return TimeChange(
        before_ns=row.before_ns,
        after_ns=row.after_ns,
        change_ns=row.change_ns,
        low_ns=row.low_ns,
        high_ns=row.high_ns,
        verdict=verdict_word(row),  # type: ignore[arg-type]
    )


_FUNCTION = ColumnOf("function", "function", "text", lambda row: row.name if row.place is not None else "", rank=4)
_SHARE = ColumnOf(
    "change_share",
    "of before",
    "share",
    lambda row: row.change_ns / row.before_ns if row.before_ns else None,
    "The difference by the time before.",
    5,
)
_ENDS = (
    field(
        "low_ns",
        "at least",
        "time",
        "The true difference lies between this and the next, with a confidence of 95 % for all rows together.",
        3,
    ),
    field("high_ns", "at most", "time", "As before.", 3),
)
_EDITED = ColumnOf(
    "edited", "edited", "text", lambda row: "edited" if row.is_edited else "", "Whether it reads anew.", 8
)


def _table(found: Comparison, changed: Sequence[Difference]) -> Table:
    name, change, *others = difference_columns(found.by)
    columns = [name, _FUNCTION, change, _SHARE, *_ENDS, *others, _EDITED]
    return table_of(f"changes_{found.by}", "What has changed", columns, changed, place=_place, limit=ROWS)


def _place(row: Difference) -> tuple[str, int]:
    """Where a line stands in the run after: nowhere if it is gone."""
    return ("", 0) if row.after is None else (row.after.record.file, row.after.record.line)
