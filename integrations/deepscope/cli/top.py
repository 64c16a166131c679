"""`deepscope top`: the slowest operators."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from deepscope.cli.options import filter_options, filters_of, load, output_option, reading_options
from deepscope.cli.output import emit
from deepscope.report.top import AGGREGATES, ORDERS, Aggregate, By, Question, ranking

__all__ = ["top"]

PIPED_WIDTH = 120
ROWS = 10


@click.command()
@click.argument("path", required=False)
@click.option(
    "-t",
    "--top",
    "-n",
    "limit",
    type=click.IntRange(0),
    help=f"Rows to show, 0 for all.  [default: {ROWS}; json, csv: all]",
)
@click.option(
    "--by",
    type=click.Choice(["operator", "type"]),
    default="operator",
    show_default=True,
    help="What the rows are: operators by name, or their types (convolution, matmul, …).",
)
@click.option(
    "--aggregate",
    type=click.Choice(AGGREGATES),
    default="sum",
    show_default=True,
    help="What the numbers are, over the calls of a row; count: sums, in the order of how many there are.",
)
@click.option("--order-by", metavar="KEY", help=f"The number that rows are ordered by: {', '.join(ORDERS)}.")
@click.option("--type", "types", metavar="GLOB", multiple=True, help="Only operators of such a type: 'conv*'.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@filter_options
@reading_options
@output_option
def top(
    *,
    path: str | None,
    limit: int | None,
    by: By,
    aggregate: Aggregate,
    order_by: str | None,
    types: tuple[str, ...],
    form: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    min_time: str | None,
    output: str | None,
    **reading: Any,
) -> None:
    """Show the slowest operators: self and total time, computation, memory, rates and shapes.

    PATH is a trace, a folder (its newest run) or a URL; by default the newest run in deepscope_logs, lightning_logs or
    runs.
    """
    question = Question(by, aggregate, order_by, types, filters_of(include, exclude, min_time))
    question.check()  # a wrong word is told before a long read
    from deepscope.report import top_report
    from deepscope.report.style import wants_color

    profile = load(path, details=("shapes",), **reading)
    found = ranking(profile, question)
    if form == "json":
        emit(top_report.top_json(profile, found, question, limit=limit or 0) + "\n", output)
    elif form == "csv":
        emit(top_report.top_csv(found, limit=limit or 0), output)
    else:
        text = top_report.top_text(
            profile,
            found,
            question,
            limit=ROWS if limit is None else limit,
            width=shutil.get_terminal_size((PIPED_WIDTH, 0)).columns,
            color=output is None and wants_color(sys.stdout),
        )
        emit(text, output)
