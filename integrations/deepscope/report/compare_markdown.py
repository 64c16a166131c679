"""A comparison of runs as Markdown, for a pull request: a headline, what is beyond noise, and the rest folded away."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.comparison import Comparison, Difference
from deepscope.comparison.fail_over import Verdict
from deepscope.quantities import time_text
from deepscope.report import markdown
from deepscope.report.compare import interval_words, noise_words, row_name, signed, step_words, verdict_word

FOLDED = 50
"""Rows within noise that are shown at most."""


def comparison_markdown(comparison: Comparison, *, limit: int = 20, verdict: Verdict | None = None) -> str:
    """The comparison as GitHub shows it; names and code from traces are shown as they are and never obeyed."""
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
    head = [comparison.by, "change", "interval", "before", "after", ""]
    by_line = comparison.by == "line"
    cells = [
        [
            markdown.code(row_name(row)) or markdown.plain(row.name) or "-",
            signed(row.change_ns),
            interval_words(row) or "unknown",
            "-" if row.status == "new" else time_text(row.before_ns) or "0",
            "-" if row.status == "gone" else time_text(row.after_ns) or "0",
            verdict_word(row),
            *([markdown.code(row.text)] if by_line else []),
        ]
        for row in rows
    ]
    return markdown.table([*head, *(["source"] if by_line else [])], cells)
