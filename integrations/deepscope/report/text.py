"""The report as text: a head, a table fitted to the width, and a foot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from deepscope.printable import printable
from deepscope.quantities import count_text
from deepscope.records import Numbers, Profile
from deepscope.report.columns import columns
from deepscope.report.filters import NO_FILTERS, Filters, row_words
from deepscope.report.findings import findings_entries
from deepscope.report.footer import footer
from deepscope.report.header import header
from deepscope.report.layout import Styles, cell_len, render
from deepscope.report.memory import memory_entries
from deepscope.report.places_of_work import critical_entries
from deepscope.report.run_verdict import run_verdict
from deepscope.report.tables import table, table_of_steps

_HELPS = frozenset({"operators", "Python", "device busy", "device idle"})
"""Causes that may be work which nobody needs."""
_ENOUGH = 0.1
"""While a finding promises this share of the wall time, it is what to do first."""
_NAMED = 3
"""Operators from outside torch that are named."""


def audit_entries(profile: Profile) -> Iterator[tuple[str, str]]:
    """One entry: what was looked at, why nothing was, or that it might help."""
    words = _found(profile) if profile.audit is not None else _asks(profile)
    if words:
        yield "audit", words


def _found(profile: Profile) -> str:
    audit = profile.audit
    assert audit is not None
    if not audit.steps:
        return printable(f"no step was looked at: {audit.left_out}")
    words = f"{audit.steps} steps were looked at, with {count_text(audit.operators)} operators in the first"
    if not audit.hidden:
        return words
    named = ", ".join(audit.hidden[:_NAMED]) + (", …" if len(audit.hidden) > _NAMED else "")
    return printable(f"{words}; what {named} do with their arguments is unknown and counts as a use")


def _asks(profile: Profile) -> str:
    """That looking would help: where a training program's own work takes the time, and no advice does."""
    is_ours = bool(profile.trace.deepscope) and profile.trace.line_source == "scopes"
    trains = any(phase.name == "backward" and phase.wall_ns for phase in profile.phases)
    is_compiled = any(line.in_compiled_region for line in profile.lines)
    is_advised = any(one.saving_ns >= _ENOUGH * profile.totals.wall_ns for one in profile.findings)
    if not is_ours or not trains or is_compiled or is_advised or profile.part_of is not None:
        return ""
    if run_verdict(profile).cause not in _HELPS:
        return ""
    return "`deepscope run --audit` (audit=True) looks for work that nobody needs, which times cannot show"


MIN_WIDTH = 40


def text_report(
    profile: Profile,
    *,
    by: str = "line",
    sort: str | None = None,
    limit: int = 20,
    width: int = 80,
    color: bool = False,
    filters: Filters = NO_FILTERS,
) -> str:
    """The report for a terminal `width` cells wide, ending in a newline.

    Args:
        profile: what is reported.
        by: a word of `tables.TABLES`.
        sort: a key of the table; None for its own.
        limit: rows shown; 0 shows all.
        filters: which rows are shown at all.
        width: in terminal cells.
        color: with escape sequences of a terminal.

    Raises:
        OptionError: no such `by` or `sort`.
    """
    instead = by == "line" and not profile.lines
    if instead:
        by, sort = "operator", None
    by = table_of_steps(by, profile)
    styles = Styles(color)
    width = max(MIN_WIDTH, width)
    chosen = table(by, profile.details)
    rows = chosen.rows(profile, sort=sort)
    kept = filters.rows(by, rows, profile.trace.project_root)
    shown = chosen.limited(kept, sort, limit)
    rest = kept[len(shown) :]  # of a tree only how many
    head = list(header(profile, by, sort))
    if words := row_words(profile, by, filters, rows, kept):
        head.append(("filter", words))
    if by == "memory" or profile.memory.failure is not None:
        head += memory_entries(profile)
    if by == "critical":
        head += critical_entries(profile)
    if instead:
        head.append(("lines", "none: recorded without Python frames, so these are its operators; see also --by kernel"))
    lines = list(entries_text(head, width, styles))
    named = replace(profile, no_line=Numbers(), framework=[]) if filters else profile  # these bear no name
    made = columns(by, shown, rest, named, sort=sort, width=width, styles=styles)
    fitted = render(made, width, title_style=styles.title)
    lines += ["", *(fitted if len(fitted) > 1 else [_nothing(by, filters)]), ""]
    if by == "line" or instead:
        advice = [*findings_entries(profile), *audit_entries(profile)]
        found = list(entries_text(advice, width, styles))
        lines += [*found, ""] if found else []
    lines += entries_text(footer(profile, by, shown, len(rest)), width, styles)
    return "\n".join(lines).rstrip("\n") + "\n"


_NOTHING = {
    "overview": "no steps and no work of a device in this trace",
    "step": "no steps: none was marked while the trace was recorded",
    "serving": "no steps of a server of models in this trace",
    "run": "no account of the whole run beside this trace",
    "thread": "no threads of the CPU in this trace",
    "stream": "no device in this trace, so no streams",
    "counter": 'no counters in this trace; counters="window" samples them',
    "collective": "no collectives between ranks in this trace",
}


def _nothing(by: str, filters: Filters) -> str:
    if filters:
        return f"no {table(by).key} match"
    if by in _NOTHING:
        return _NOTHING[by]
    if by == "memory":
        return "no memory in this trace; profile_memory=True records it"
    if by == "critical":
        return "no critical path in this trace"
    return f"no {table(by).key} in this trace"


def entries_text(entries: Iterable[tuple[str, str]], width: int, styles: Styles) -> Iterator[str]:
    """Titles at the left, texts wrapped beside them; a title that comes again is not repeated."""
    listed = list(entries)
    indent = max((len(title) for title, _ in listed), default=0) + 2
    last = ""
    for title, text in listed:
        name = "" if title == last else title
        last = title
        for part in _wrapped(text, width - indent):
            yield styles.title(name) + " " * (indent - len(name)) + part
            name = ""


def _wrapped(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line
