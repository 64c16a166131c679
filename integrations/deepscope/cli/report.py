"""`deepscope report`: the lines that cost the device time."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from deepscope.cli.options import filter_options, filters_of, load, output_option, reading_options, scheduler_option
from deepscope.cli.output import emit
from deepscope.errors import OptionError
from deepscope.records import Detail
from deepscope.report.filters import NO_FILTERS, Filters, check_view
from deepscope.report.line_choice import check_line, find_line
from deepscope.report.tables import TABLES, table
from deepscope.store import Profile

__all__ = ["rendered", "report"]

PIPED_WIDTH = 120
ROWS = 20
PARTS = 40


@click.command()
@click.argument("path", required=False)
@click.option(
    "-n", "limit", type=click.IntRange(0), help=f"Rows to show, 0 for all.  [default: {ROWS}; json, csv: all]"
)
@click.option("--by", type=click.Choice(list(TABLES)), default="line", show_default=True, help="What the rows are.")
@click.option("--line", "where", metavar="FILE:LINE", help="Only this line, with all that its time is made of.")
@click.option("--shapes", is_flag=True, help="With --by operator: a row for each of the arguments' shapes.")
@click.option("--stacks", is_flag=True, help="With --by operator: a row for each path of your lines that led there.")
@click.option("--fold", is_flag=True, help="With --line: modules that differ in a number alone become one.")
@click.option("--sort", metavar="KEY", help="Key to sort by: self, total, forward, backward, cpu, wait, idle, …")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@filter_options
@reading_options
@scheduler_option
@output_option
def report(
    *,
    path: str | None,
    limit: int | None,
    by: str,
    where: str | None,
    shapes: bool,
    stacks: bool,
    fold: bool,
    sort: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    phase: str,
    module: str,
    min_time: str | None,
    form: str,
    output: str | None,
    **reading: Any,
) -> None:
    """Show the lines of code that cost the device time.

    PATH is a trace, a folder (its newest run) or a URL; by default the newest run in deepscope_logs, lightning_logs or
    runs.
    """
    wanted: dict[Detail, bool] = {"shapes": shapes, "stacks": stacks}
    details = [name for name, is_wanted in wanted.items() if is_wanted]
    filters = filters_of(include, exclude, min_time)
    table(by, details).check(sort)  # a wrong key is told before a long read
    filters.check(by)
    check_view(by, phase=phase, module=module)
    if details and by != "operator":
        raise OptionError(details[0], True, "goes with --by operator alone")
    reading |= {"phase": phase, "module": module, "details": details}
    if where is not None:
        if by != "line" or sort is not None or filters:
            raise OptionError(
                "line", where, "neither --by nor --sort goes with it, nor do --include, --exclude and --min-time"
            )
        check_line(where)
        emit(line_rendered(load(path, **reading), form, where, fold=fold, limit=limit, output=output), output)
        return
    if fold:
        raise OptionError("fold", True, "goes with --line alone")
    profile = load(path, has_notes=form != "csv", **reading)
    emit(rendered(profile, form, by=by, sort=sort, limit=limit, filters=filters, output=output), output)


def line_rendered(
    profile: Profile, form: str, where: str, *, fold: bool = False, limit: int | None = None, output: str | None = None
) -> str:
    """The report of the line that `where` means, as text for standard output or the file `output`."""
    from deepscope.report import line_report
    from deepscope.report.style import wants_color

    line = find_line(profile, where)
    if form == "json":
        return line_report.line_json(profile, line, fold=fold) + "\n"
    if form == "csv":
        return line_report.line_csv(profile, line, fold=fold)
    return line_report.line_text(
        profile,
        line,
        fold=fold,
        limit=PARTS if limit is None else limit,
        width=shutil.get_terminal_size((PIPED_WIDTH, 0)).columns,
        color=output is None and wants_color(sys.stdout),
    )


def rendered(
    profile: Profile,
    form: str,
    *,
    by: str = "line",
    sort: str | None = None,
    limit: int | None = None,
    filters: Filters = NO_FILTERS,
    output: str | None = None,
) -> str:
    """The report as text for standard output or the file `output`."""
    if form == "json":
        from deepscope.report.json_report import json_report

        return json_report(profile, by=by, sort=sort, limit=limit or 0, filters=filters) + "\n"
    if form == "csv":
        from deepscope.report.csv_report import csv_report

        return csv_report(profile, by=by, sort=sort, limit=limit or 0, filters=filters)
    from deepscope.report.style import wants_color
    from deepscope.report.text import text_report

    return text_report(
        profile,
        by=by,
        sort=sort,
        limit=ROWS if limit is None else limit,
        filters=filters,
        width=shutil.get_terminal_size((PIPED_WIDTH, 0)).columns,
        color=output is None and wants_color(sys.stdout),
    )
