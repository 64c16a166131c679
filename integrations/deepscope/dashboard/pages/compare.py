"""The comparison page: a run beside an earlier one, with what is within noise told apart."""

from __future__ import annotations

from typing import Literal

import msgspec

from deepscope import comparison as comparing
from deepscope.comparison.compare import Comparison
from deepscope.comparison.differences import Difference
from deepscope.dashboard.answer import Answer, Choice
from deepscope.dashboard.library import Library, NotYetError
from deepscope.dashboard.pages.words import title_of, word
from deepscope.records import Profile
from deepscope.report.compare import noise_words, row_name, step_words, verdict_word

__all__ = [
    "Change",
    "ChangedRow",
    "CompareQuestion",
    "Compared",
    "ComparedNumber",
    "ComparedRun",
    "ComparedTable",
    "RowStatus",
    "RowVerdict",
    "compare",
]

ComparedTable = Literal["line", "operator", "kernel", "module", "phase", "step"]
"""What the rows of a comparison are."""
ComparedNumber = Literal["cost", "self"]
"""What of a line is compared: what it costs the run, or its device time alone."""
RowVerdict = Literal["slower", "faster", "within noise", "new", "gone", "unknown"]
"""What has become of a row: `unknown` where nothing tells of noise."""
RowStatus = Literal["same", "moved", "new", "gone"]
"""Whether a row is in both runs, and at the same place."""

ROWS = 3000
"""Rows of a comparison, the largest changes beyond noise first."""


class CompareQuestion(Choice, kw_only=True, frozen=True):
    """Which run is compared with which."""

    baseline: str = ""
    """As `Run.id` has it: the run before; "" for the one that was recorded before the chosen one."""
    by: ComparedTable = "line"
    number: ComparedNumber = "cost"


class Change(Answer):
    """A time a step in both runs, in nanoseconds (without steps: in all)."""

    before_ns: float
    after_ns: float
    change_ns: float
    low_ns: float | None
    """Where the true difference lies, from here to `high_ns`; None where nothing tells of the spread."""
    high_ns: float | None
    verdict: RowVerdict


class ChangedRow(Answer):
    """A row in both runs."""

    name: str
    """Of a line `net.py:42`."""
    file: str
    """Of a line as the run after has recorded it; "" for others, and for lines that are gone."""
    line: int
    function: str
    source: str
    moved_from: str
    """Where a moved line stood before; "" for others."""
    is_edited: bool
    """Whether the line reads otherwise than before."""
    status: RowStatus
    change: Change


class ComparedRun(Answer):
    """A side of a comparison."""

    run: str
    title: str
    recorded_at: str
    steps: int


class Compared(Answer):
    """A run beside another one."""

    before: ComparedRun | None
    """None where there is no other run; then there are no rows."""
    after: ComparedRun
    by: ComparedTable
    number: ComparedNumber
    has_intervals: bool
    """Whether anything is known of noise."""
    step: Change | None
    step_words: str
    noise_words: str
    rows: list[ChangedRow]
    """Those beyond noise first, each part by the size of its change; rows without a change are left out."""
    beyond_noise: int
    left_out: int


def compare(library: Library, question: CompareQuestion) -> Compared:
    """What became slower or faster since another run."""
    baseline = question.baseline or _one_before(library, question)
    mine = Choice(**{name: getattr(question, name) for name in Choice.__struct_fields__})
    if not baseline:
        return Compared(
            before=None,
            after=_run(library, mine, library.profile(mine)),
            by=question.by,
            number=question.number,
            has_intervals=False,
            step=None,
            step_words="",
            noise_words="",
            rows=[],
            beyond_noise=0,
            left_out=0,
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
        step_words=word(step_words(found)),
        noise_words=word(noise_words(found), 600),
        rows=[_row(row, found) for row in changed[:ROWS]],
        beyond_noise=sum(not row.within_noise for row in changed),
        left_out=max(len(changed) - ROWS, 0),
    )


def _one_before(library: Library, question: Choice) -> str:
    """The run that was recorded before the chosen one: of the same program if there is one."""
    chosen = library.run(question)
    windows = [number for number in chosen.windows if chosen.window is not None and number < chosen.window]
    if windows:
        return f"{chosen.base}~{max(windows)}"
    names = [one.id for one in library.runs()]
    older = library.runs()[names.index(chosen.base) + 1 :]
    alike = [one for one in older if one.program == chosen.program]
    return next((one.id for one in [*alike, *older]), "")


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


def _change(row: Difference) -> Change:
    return Change(
        before_ns=row.before_ns,
        after_ns=row.after_ns,
        change_ns=row.change_ns,
        low_ns=None if row.interval is None else row.interval.low_ns,
        high_ns=None if row.interval is None else row.interval.high_ns,
        verdict=verdict_word(row),  # type: ignore[arg-type]
    )


def _row(row: Difference, of: Comparison) -> ChangedRow:
    is_line = of.by == "line"
    now = row.after if is_line else None
    return ChangedRow(
        name=word(row_name(row)),
        file=now.record.file if now is not None else "",
        line=now.record.line if now is not None else 0,
        function=word(row.name) if is_line and row.place is not None else "",
        source=word(row.text),
        moved_from=_moved(row),
        is_edited=row.is_edited,
        status=row.status,
        change=_change(row),
    )


def _moved(row: Difference) -> str:
    if row.status != "moved" or row.before is None or row.after is None:
        return ""
    line = row.before.record.line
    return f"line {line}" if row.before.path == row.after.path else word(f"{row.before.path}:{line}")
