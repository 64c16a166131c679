"""`deepscope compare`: what became slower or faster, and what is noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from deepscope.cli.options import FloatType, load, load_all, reading_options
from deepscope.cli.output import emit, form_option, rows_option, rows_shown, tell, terminal
from deepscope.comparison import NUMBERS, TABLES

SLOWER = 3
"""The exit code where `--fail-over` fails: apart from 1 (an error) and 2 (a wrong use)."""


class Percent(FloatType):
    """`5%` or `5`."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of percent."""
        try:
            number = float(str(value).strip().removesuffix("%").rstrip())
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            self.fail(f"{value!r} is no percentage such as 5%", param, ctx)
        return number


@click.command()
@click.argument("before")
@click.argument("after")
@click.option("--before", "more_before", multiple=True, metavar="PATH", help="One more run of BEFORE; may come again.")
@click.option("--after", "more_after", multiple=True, metavar="PATH", help="One more run of AFTER; may come again.")
@click.option("--by", type=click.Choice(TABLES), default="line", show_default=True, help="What the rows are.")
@click.option(
    "--metric",
    "number",
    type=click.Choice(NUMBERS),
    default="cost",
    show_default=True,
    help="Of lines: what they cost the run (idle time, or Python's, included), or their own device time.",
)
@rows_option
@click.option("--fail-over", type=Percent(), metavar="PERCENT", help="Exit with 3 if more than so much slower.")
@form_option("text", "json", "markdown")
@reading_options("rank", "step", "stage", "partial")
def compare(
    *,
    before: str,
    after: str,
    more_before: Sequence[str],
    more_after: Sequence[str],
    by: Any,
    number: Any,
    limit: int | None,
    fail_over: float | None,
    form: str,
    **reading: Any,
) -> int:
    """Show what became slower or faster from BEFORE to AFTER, in time a step, and what is within noise.

    BEFORE and AFTER are traces, folders or URLs. A folder's newest run counts, with those of its other runs that ran
    the same code: from repeats the noise between runs is known. Lines are carried over edits by the texts that ran.

    The exit code is 0; with --fail-over it is 3 if the step, or a line, is slower by more than PERCENT and by more than
    noise.
    """
    from deepscope.comparison import compare as compared
    from deepscope.comparison.compare import judge

    sides = []
    for path, more in ((before, more_before), (after, more_after)):
        sides.append([*load_all(path, **reading), *(load(one, **reading) for one in more)])
    comparison = compared(*sides, by=by, number=number)
    verdict = None if fail_over is None else judge(comparison, fail_over)
    emit(_rendered(comparison, form, limit=limit, verdict=verdict))
    if verdict is not None and not comparison.has_intervals:
        tell("--fail-over cannot judge: the noise is unknown (see `noise`)")
    return SLOWER if verdict is not None and verdict.reasons else 0


def _rendered(comparison: Any, form: str, *, limit: int | None, verdict: Any) -> str:
    from deepscope.report.comparison_report import comparison_json, comparison_text

    rows = rows_shown(limit, form)
    if form == "json":
        return comparison_json(comparison, limit=rows, verdict=verdict)
    if form == "markdown":
        from deepscope.report.comparison_report import comparison_markdown

        return comparison_markdown(comparison, limit=rows, verdict=verdict)
    from deepscope.cli.next_step import after_comparison, with_next

    text = comparison_text(comparison, limit=rows, verdict=verdict, **terminal())
    return with_next(text, after_comparison(comparison))
