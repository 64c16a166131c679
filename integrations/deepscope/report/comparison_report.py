"""A comparison of runs as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from deepscope.comparison import Comparison, Difference
from deepscope.comparison.compare import FailOverVerdict
from deepscope.comparison.noise import CONFIDENCE
from deepscope.comparison.pairing import share_few_lines, shared_lines
from deepscope.printable import printable
from deepscope.quantities import number_text, share_text, time_text
from deepscope.records import Profile
from deepscope.records.source_files import short_path, short_place
from deepscope.report import markdown
from deepscope.report.counters import busy_words
from deepscope.report.event_names import readable
from deepscope.report.table_column import ColumnOf, cell_text, field, text_columns
from deepscope.report.terminal import MIN_WIDTH, Styles, TextColumn, entries_text, render, shown_words
from deepscope.report.text_report import header

COMPARISON_FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""


def comparison_json(comparison: Comparison, *, limit: int = 0, verdict: FailOverVerdict | None = None) -> str:
    """The comparison as JSON text, in ASCII."""
    return json.dumps(comparison_object(comparison, limit=limit, verdict=verdict), indent=1) + "\n"


def comparison_object(
    comparison: Comparison, *, limit: int = 0, verdict: FailOverVerdict | None = None
) -> dict[str, Any]:
    """The comparison as dicts and lists, described in docs/report.md."""
    rows = comparison.rows[:limit] if limit else comparison.rows
    return {
        "format": COMPARISON_FORMAT,
        "metric": comparison.after[0].metric,
        "by": comparison.by,
        "number": comparison.number,
        "confidence": CONFIDENCE,
        "run_noise": comparison.run_noise,
        "shared_lines": shared_lines(comparison.before[0], comparison.after[0]),
        "before": [_run(profile) for profile in comparison.before],
        "after": [_run(profile) for profile in comparison.after],
        "step": _numbers(comparison.step),
        "of": len(comparison.rows),
        "fail_over": None if verdict is None else {"percent": verdict.percent, "failed": verdict.reasons},
        "rows": [_row(row, comparison) for row in rows],
    }


def comparison_text(
    comparison: Comparison,
    *,
    limit: int = 20,
    width: int = 80,
    color: bool = False,
    verdict: FailOverVerdict | None = None,
) -> str:
    """The comparison for a terminal: what is beyond noise first, what may be none last."""
    styles = Styles(color)
    width = max(MIN_WIDTH, width)
    changed = [row for row in comparison.rows if row.change_ns]
    shown = changed[:limit] if limit else changed
    lines = list(entries_text(_head(comparison), width, styles))
    table = [f"no {comparison.by} has changed"]
    if shown:
        table = render(_columns(shown, comparison, width, styles), width, title_style=styles.title)
    lines += ["", *table]
    foot = list(_foot(changed, shown))
    foot += [("failed", printable(reason)) for reason in (verdict.reasons if verdict else ())]
    if foot:
        lines += ["", *entries_text(foot, width, styles)]
    return "\n".join(lines) + "\n"


def step_words(comparison: Comparison) -> str:
    """`50.1ms → 62.3ms a step: +12.2ms (+24.4%), beyond noise (+9.80ms to +14.6ms)`"""
    step = comparison.step
    unit = "a step" if all(profile.totals.steps for profile in (*comparison.before, *comparison.after)) else "in all"
    times = f"{time_text(step.before_ns) or '0'} → {time_text(step.after_ns) or '0'} {unit}"
    interval = f" ({interval_words(step)})" if step.interval is not None else ""
    word = "no interval is known" if step.interval is None else "within noise" if step.within_noise else "beyond noise"
    before, after = comparison.before[0], comparison.after[0]
    strangers = strangers_words(before, after, shared_lines(before, after))
    return f"{times}: {signed(step.change_ns)}{_percent(step)}, {word}{interval}" + (
        f"; {strangers}" if strangers else ""
    )


def strangers_words(before: Profile, after: Profile, shared: float | None) -> str:
    """`these runs share 3% of their lines: train.py before, serve.py after`; "" where they share most of them.

    `shared`: what `shared_lines` tells of them.
    """
    if not share_few_lines(shared):
        return ""
    names = [(short_path(one.trace.program), one.trace.project_root) for one in (before, after)]
    pairs = (pair for pair in zip(*names, strict=True) if all(pair) and pair[0] != pair[1])
    named = next((printable(f": {old} before, {new} after") for old, new in pairs), "")
    if shared is None:
        return f"whether these runs share code is not known{named}"
    return f"these runs share {share_text(shared, 1) or 'none'} of their lines{named}"


def noise_words(comparison: Comparison) -> str:
    """What the intervals rest on."""
    if not comparison.has_intervals:
        return (
            "a run of one step, or without steps, has no spread: no interval can be given and no change is called"
            " significant; record several steps, or give several runs of each side"
        )
    share = number_text(comparison.run_noise, "share")
    source = "as repeats show" if comparison.is_repeated else "as most rows suggest; repeats would tell"
    rests_on = f"the spread of steps and {share} between runs ({source})"
    return f"{CONFIDENCE:.0%} intervals for all rows together, from {rests_on}"


def interval_words(row: Difference) -> str:
    """`+1.20ms to +3.40ms`; "" where it is not known."""
    if row.interval is None:
        return ""
    return f"{signed(row.interval.low_ns)} to {signed(row.interval.high_ns)}"


def verdict_word(row: Difference) -> str:
    """What has become of a row, in a word or two."""
    if row.interval is None:
        return row.status if row.status in {"new", "gone"} else "unknown"
    if row.within_noise:
        return "within noise"
    if row.status in {"new", "gone"}:
        return row.status
    return "slower" if row.change_ns > 0 else "faster"


def row_name(row: Difference) -> str:
    """What a row is: a place, or a name; not yet safe to print."""
    place = row.place
    if place is None:
        return readable(row.name)
    return short_place(place.path, place.record.line)


def signed(change_ns: float) -> str:
    """`+3.10ms`, `-120µs`, `0`."""
    return ("+" if change_ns > 0 else "") + (time_text(change_ns) or "0")


def _head(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for title, profiles in (("before", comparison.before), ("after", comparison.after)):
        for profile in profiles:
            for name, text in header(profile, by=""):
                if name == "trace" or (name == "time" and len(profiles) == 1):
                    yield title, text
    yield "step", step_words(comparison)
    yield "noise", noise_words(comparison)
    for title, profiles in (("before", comparison.before), ("after", comparison.after)):
        for words in dict.fromkeys(busy_words(profile.trace) for profile in profiles):
            if words:
                yield "busy", f"{title}: {words}"
    sides = [all(profile.totals.steps for profile in side) for side in (comparison.before, comparison.after)]
    if sides[0] != sides[1]:
        yield "steps", f"none {'after' if sides[0] else 'before'}: its whole time stands beside that of a step"


def _foot(changed: Sequence[Difference], shown: Sequence[Difference]) -> Iterator[tuple[str, str]]:
    noise = sum(row.within_noise and row.interval is not None for row in changed)
    if noise:
        rows = f"{noise:,} of {len(changed):,} changes are" if noise > 1 else f"1 of {len(changed):,} changes is"
        yield "noise", f"{rows} within noise: the same code may differ so from run to run"
    if len(changed) > len(shown):
        yield "more", shown_words(len(shown), len(changed), what="changed rows")


def difference_columns(by: str) -> list[ColumnOf]:
    """What differs, by how much, and what a line was before: the columns of a comparison, times in a step."""
    return [
        ColumnOf("name", by, "place" if by == "line" else "text", row_name, least=16),
        field(
            "change_ns",
            "difference",
            "time",
            "After less before, in a step.",
            short="change",
            is_signed=True,
            heat=lambda row: "" if row.within_noise else "hot" if row.change_ns > 0 else "good",
        ),
        _side("before_ns", "before", "new", 2),
        _side("after_ns", "after", "gone", 1),
        ColumnOf("verdict", "verdict", "text", verdict_word, "Beyond noise, or within it.", short=" "),
        ColumnOf("moved", "was", "place", _moved, "Where a moved line stood before.", 4, least=8, short="from"),
        ColumnOf("source", "source", "text", lambda row: row.text, "The line that ran.", 5, least=20),
    ]


def _side(field: str, title: str, absent: str, rank: int) -> ColumnOf:
    def value(row: Difference) -> float | None:
        return None if row.status == absent else getattr(row, field)

    return ColumnOf(field, title, "time", value, "In a step.", rank, shows_zero=True, none="-")


_INTERVAL = ColumnOf("interval", "interval", "text", interval_words, rank=3, is_numeric=True)


def _columns(rows: Sequence[Difference], comparison: Comparison, width: int, styles: Styles) -> list[TextColumn]:
    name, change, *others, source = difference_columns(comparison.by)
    text = source._replace(
        value=lambda row: row.text or (f"def {row.name}" if row.place else ""), least=max(20, width // 4)
    )
    return text_columns([name, change, _INTERVAL, *others, text], rows, styles)


def _moved(row: Difference) -> str:
    """Where a moved line stood: its number where it is the same file."""
    if row.status != "moved" or row.before is None or row.after is None:
        return ""
    line = row.before.record.line
    return f"line {line}" if row.before.path == row.after.path else short_place(row.before.path, line)


def _percent(row: Difference) -> str:
    if not row.before_ns or not row.change_ns:
        return ""
    return f" ({'+' if row.change_ns > 0 else '-'}{share_text(abs(row.change_ns), row.before_ns)})"


def _run(profile: Profile) -> dict[str, Any]:
    totals = profile.totals
    return {
        "path": profile.trace.path,
        "paths": profile.trace.paths or [profile.trace.path],
        "steps": totals.steps,
        "step_ns": totals.wall_ns / max(1, totals.steps) / max(1, totals.ranks),
        "busy": busy_words(profile.trace),
    }


def _numbers(row: Difference) -> dict[str, Any]:
    return {
        "before_ns": row.before_ns,
        "after_ns": row.after_ns,
        "change_ns": row.change_ns,
        "interval_ns": None if row.interval is None else list(row.interval),
        "within_noise": row.within_noise,
    }


def _row(row: Difference, comparison: Comparison) -> dict[str, Any]:
    found = {**_numbers(row), "status": row.status}
    if comparison.by != "line":
        return {"name": row.name, "label": readable(row.name), **found}
    place, before = row.place, row.before
    path, line = ("", 0) if place is None else (place.path, place.record.line)
    return {
        "file": path,
        "line": line,
        "function": row.name,
        "text": row.text,
        **found,
        "before_file": before.path if before is not None else None,
        "before_line": before.record.line if before is not None else None,
        "edited": row.is_edited,
    }


FOLDED = 50
"""Rows within noise that are shown at most."""


def comparison_markdown(comparison: Comparison, *, limit: int = 20, verdict: FailOverVerdict | None = None) -> str:
    """The comparison as GitHub shows it; names and code from traces are shown as they are and never interpreted."""
    changed = [row for row in comparison.rows if row.change_ns]
    beyond = [row for row in changed if not row.within_noise]
    rest = [row for row in changed if row.within_noise]
    shown = beyond[:limit] if limit else beyond
    parts = [f"### DeepScope: {step_words(comparison)}"]
    if verdict is not None and comparison.has_intervals:
        failed = [f"- **failed**: {markdown.plain(reason, 400)}" for reason in verdict.reasons]
        parts.append("\n".join(failed) or f"Nothing is slower by more than {verdict.percent:g} % beyond noise.")
    if shown:
        parts.append(_table(shown, comparison))
    elif comparison.has_intervals:
        parts.append(f"No {comparison.by} differs by more than noise.")
    if len(beyond) > len(shown):
        parts.append(f"{len(beyond) - len(shown):,} more beyond noise (`-n 0` shows all).")
    if rest:
        word = "within noise" if comparison.has_intervals else "of unknown noise"
        title = f"{len(rest):,} {'change' if len(rest) == 1 else 'changes'} {word}"
        parts.append(f"<details><summary>{title}</summary>\n\n{_table(rest[:FOLDED], comparison)}\n\n</details>")
    parts.append(f"{noise_words(comparison)[:1].upper()}{noise_words(comparison)[1:]}.")
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Difference], comparison: Comparison) -> str:
    name, change, before, after, *_, source = difference_columns(comparison.by)
    numbers = [change, _INTERVAL, before, after]
    by_line = comparison.by == "line"
    cells = [
        [
            markdown.code(row_name(row)) or markdown.plain(row.name) or "-",
            *(cell_text(one, one.value(row)) or "unknown" for one in numbers),
            verdict_word(row),
            *([markdown.code(row.text)] if by_line else []),
        ]
        for row in rows
    ]
    head = [name.title, *(one.short or one.title for one in numbers), "", *([source.title] if by_line else [])]
    return markdown.table(head, cells)
