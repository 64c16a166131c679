"""The lines: the files that they stand in, the lines of one file beside its text, and all of them as a list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import (
    Choice,
    Column,
    PageAnswer,
    Table,
    described,
    file_name,
    in_page_words,
    table_of,
    word,
)
from deepscope.errors import OptionError
from deepscope.printable import clipped, printable
from deepscope.records import Costs, Line, Numbers, Profile, cost_ns
from deepscope.records.source_files import path_below
from deepscope.report.line_table import (
    FUNCTION,
    VERDICT,
    RestRow,
    Sources,
    cost_share,
    framework_words,
    rest_rows,
    used_columns,
    without_framework,
)
from deepscope.report.table_column import ColumnOf, place_column

FILES = 4000
"""Files of the tree, the most expensive."""
TEXT_LINES = 200_000
"""Of a file; a longer one is not shown."""
LINE_LETTERS = 1000
"""Of a line of text."""

FileGroup = Literal["project", "outside", "library"]
"""Where a file belongs: the project, other user code, recorded lines of libraries, whose time is the user's."""


class LineFile(PageAnswer):
    """A file with the sums over its lines."""

    file: str
    """As recorded."""
    name: str
    """From the project's root, with `/`."""
    group: FileGroup
    lines: int
    """Measured ones."""
    values: list[int | None]
    """By `Lines.columns`; null for what does not add up."""


class Rest(PageAnswer):
    """What is no line's: a framework's own work, and the work of no user line."""

    name: str
    about: str
    values: list[int]


class Lines(PageAnswer):
    """The files, the most expensive first, and what is no line's; without the files of libraries they are all."""

    columns: list[Column]
    wholes: list[int | None]
    """Of all lines and the rest; null for what does not add up."""
    largest: list[int]
    """The largest value of a line, to which heat is relative."""
    files: list[LineFile]
    rest: list[Rest]
    lines: int
    """Of the user; those of libraries are apart."""
    left_out: int
    """Files beyond the limit."""


class MeasuredLine(PageAnswer):
    """A line of a file with its numbers; of one that runs in several functions (a comprehension's) all together."""

    line: int
    functions: list[str]
    """The most expensive first."""
    verdict: str
    notes: list[str]
    """What its numbers are of, where that is not simply the line."""
    is_library: bool
    values: list[int]
    """By `columns`; of totals, which overlap, the largest."""


class LineList(PageAnswer):
    """All lines."""

    lines: Table
    """The user's, and what is no line's: they sum to the whole."""
    library: Table
    """Recorded lines of libraries: their time is the user's lines'."""


class FileQuestion(Choice, kw_only=True, frozen=True):
    """Which file."""

    file: str = ""
    """As recorded, whose name may be empty."""


class FileText(PageAnswer):
    """A file's text as it ran, and its measured lines."""

    file: str
    name: str
    columns: list[Column]
    largest: list[int]
    """The largest value of a line of the whole profile."""
    text: list[str]
    """Empty where what ran is not known for certain."""
    missing: str
    """Why there is no text."""
    rows: list[MeasuredLine]
    """By number."""


def lines(library: Library, question: Choice) -> Lines:
    """The files that lines stand in, with their sums."""
    profile = library.profile(question)
    numbers = used_columns(profile)
    files = _files(profile, numbers)
    rest = rest_rows(profile)
    about = framework_words(profile)
    return Lines(
        columns=described(numbers),
        wholes=_sums_of([*profile.lines, *rest], profile, numbers),
        largest=_largest(profile, numbers),
        files=files[:FILES],
        rest=[
            Rest(
                name=word(row.name),
                about=word(in_page_words(about.get(row.name, ""))),
                values=values_of(row, profile, numbers),
            )
            for row in rest
        ],
        lines=len(profile.lines),
        left_out=max(len(files) - FILES, 0),
    )


def line_list(library: Library, question: Choice) -> LineList:
    """All lines as tables."""
    profile = library.profile(question)
    numbers = used_columns(profile)
    own = [without_framework(line, profile) for line in profile.lines]
    mine: list[Line | RestRow] = Costs.ranked([*own, *rest_rows(profile)])
    of_library = sorted(profile.library_lines, key=lambda line: -line.total_device_ns)
    return LineList(
        lines=_table(profile, "lines", "Lines", numbers, mine),
        library=_table(profile, "library-lines", "Lines of libraries", numbers, of_library),
    )


def _table(
    profile: Profile, name: str, title: str, numbers: Sequence[ColumnOf], rows: Sequence[Line | RestRow]
) -> Table:
    sources = Sources(profile)

    def text(row: Line | RestRow) -> str:
        return sources.text(row) if isinstance(row, Line) and (row.exact or row.fused) else ""

    columns = [
        place_column(profile, lambda row: row.name, least=0),
        *([cost_share(profile)] if name == "lines" else []),
        *numbers,
        VERDICT,
        FUNCTION,
        ColumnOf("source", "source", "text", text),
    ]
    return table_of(name, title, columns, rows)


def file(library: Library, question: FileQuestion) -> FileText:
    """One file.

    Raises:
        OptionError: the profile does not have it.
    """
    profile = library.profile(question)
    path = question.file
    by_number: dict[tuple[int, bool], list[Line]] = defaultdict(list)
    for is_library, rows in ((False, profile.lines), (True, profile.library_lines)):
        for row in rows:
            if row.file == path:
                by_number[row.line, is_library].append(row)
    if not by_number and path not in profile.files:
        raise OptionError("file", printable(path)[:200], "this profile has no such file")
    numbers = used_columns(profile)
    text, missing = _text(profile, path)
    return FileText(
        file=path,
        name=_name(profile, path),
        columns=described(numbers),
        largest=_largest(profile, numbers),
        text=text,
        missing=missing,
        rows=[
            _measured(profile, number, by_number[number, is_library], numbers, is_library=is_library)
            for number, is_library in sorted(by_number)
        ],
    )


def notes_of(line: Line) -> list[str]:
    """What a line's numbers are of, where that is not simply the line."""
    found = []
    if line.fused:
        found.append("its parts of kernels that were fused from several lines")
    elif not line.exact:
        found.append("of the loop that begins here" if line.of_loop else "of the whole function that begins here")
    elif line.shared_ns:
        found.append("with its parts of kernels that were fused from several lines")
    if line.in_compiled_region:
        found.append("calls compiled code")
    if line.slowed:
        found.append("slowed by recording")
    return found


def values_of(row: Numbers, profile: Profile, numbers: Iterable[ColumnOf]) -> list[int]:
    """A row's values, without what is the training framework's own of them."""
    own = without_framework(row, profile)
    return [round(float(one.value(own) or 0)) for one in numbers]


def _sums_of(rows: Sequence[Numbers], profile: Profile, numbers: Sequence[ColumnOf]) -> list[int | None]:
    """The sums over rows; None for what does not add up."""
    columns = zip(*(values_of(row, profile, numbers) for row in rows), strict=True)
    return [sum(values) if one.is_sum else None for one, values in zip(numbers, columns, strict=True)]


def _measured(
    profile: Profile, number: int, rows: list[Line], numbers: Sequence[ColumnOf], *, is_library: bool
) -> MeasuredLine:
    rows = Costs.ranked(rows)
    values = [values_of(row, profile, numbers) for row in rows]
    return MeasuredLine(
        line=number,
        functions=[word(row.function) for row in rows],
        verdict=rows[0].verdict,
        notes=list(dict.fromkeys(note for row in rows for note in notes_of(row))),
        is_library=is_library,
        values=[
            sum(column) if one.is_sum else max(column)
            for one, column in zip(numbers, zip(*values, strict=True), strict=True)
        ],
    )


def _files(profile: Profile, numbers: Sequence[ColumnOf]) -> list[LineFile]:
    """The most expensive first; those of libraries last."""
    groups: dict[tuple[str, FileGroup], list[Line]] = {}
    root = profile.trace.project_root
    for line in profile.lines:
        groups.setdefault((line.file, "project" if not root or path_below(line.file, root) else "outside"), []).append(
            line
        )
    for line in profile.library_lines:
        groups.setdefault((line.file, "library"), []).append(line)
    order = sorted(groups, key=lambda key: (key[1] == "library", -_weight(groups[key], key[1]), key))
    return [
        LineFile(
            file=path,
            name=_name(profile, path),
            group=group,
            lines=len(groups[path, group]),
            values=_sums_of(groups[path, group], profile, numbers),
        )
        for path, group in order
    ]


def _weight(rows: Iterable[Line], group: FileGroup) -> int:
    return sum(row.total_device_ns if group == "library" else cost_ns(row) for row in rows)


def _name(profile: Profile, path: str) -> str:
    name = file_name(path, profile.trace.project_root)
    return name if path.startswith("/") else name.replace("\\", "/")


def _largest(profile: Profile, numbers: Sequence[ColumnOf]) -> list[int]:
    rows = [values_of(row, profile, numbers) for row in (*profile.lines, *profile.library_lines)]
    return [max(column) for column in zip(*rows, strict=True)] or [0] * len(numbers)


def _text(profile: Profile, path: str) -> tuple[list[str], str]:
    found = Sources(profile).whole(path)
    if not any(found):
        recorded = profile.files.get(path)
        if recorded is None or not recorded.sha256:
            return [], "The trace does not have this file's text."
        if recorded.text is not None:
            return [], ""
        return [], "The trace has no text of this file, and the file is not here as it was when it ran."
    if len(found) > TEXT_LINES:
        return [], "The file is too long to be shown."
    return [clipped(line.expandtabs(4), LINE_LETTERS) for line in found], ""
