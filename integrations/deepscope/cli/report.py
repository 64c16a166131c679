"""`deepscope report`: the lines that cost the device time."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from deepscope.cli.next_step import after_line, after_report, with_next
from deepscope.cli.options import filter_options, filters_of, load, reading_options, scheduler_address
from deepscope.cli.output import emit, form_option, rows_option, rows_shown, terminal
from deepscope.errors import OptionError
from deepscope.records import Detail
from deepscope.report.filters import NO_FILTERS, Filters, check_view
from deepscope.report.json_csv import csv_report, json_report
from deepscope.report.line_report import check_line, find_line, line_csv, line_json, line_text
from deepscope.report.line_tree import lines_of
from deepscope.report.operator_ranking import (
    AGGREGATES,
    Aggregate,
    RankingQuery,
    ranking,
    ranking_csv,
    ranking_json,
    ranking_text,
)
from deepscope.report.tables import TABLES, table
from deepscope.report.text_report import text_report
from deepscope.store import Profile
from deepscope.store.companion_files import is_snapshot


@click.command()
@click.argument("path", required=False)
@rows_option
@click.option(
    "--by",
    type=click.Choice([*TABLES, "type", "stack"]),
    default="line",
    show_default=True,
    help="What the rows are; stack: operators by the lines that led there, or a memory snapshot with its stacks.",
)
@click.option(
    "--aggregate",
    type=click.Choice(AGGREGATES),
    help="With --by operator or type: with rates and shapes, the sum, mean or max over calls.  [default of type: sum]",
)
@click.option("--line", "where", metavar="FILE:LINE", help="Only this line, with all that its time is made of.")
@click.option("--shapes", is_flag=True, help="With --by operator or stack: a row for each of the arguments' shapes.")
@click.option("--fold", is_flag=True, help="With --line: modules that differ in a number alone become one.")
@click.option("--sort", metavar="KEY", help="Key to sort by: self, total, forward, backward, cpu, wait, idle, …")
@form_option("text", "json", "csv")
@filter_options
@reading_options()
def report(
    *,
    path: str | None,
    limit: int | None,
    by: str,
    aggregate: Aggregate | None,
    where: str | None,
    shapes: bool,
    fold: bool,
    sort: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    phase: str,
    module: str,
    min_time: float | None,
    form: str,
    **reading: Any,
) -> None:
    """Show the lines of code that cost the device time.

    PATH is a trace, a folder (its newest run) or a URL; by default the newest run in deepscope_logs, lightning_logs or
    runs. Of a snapshot of torch's memory (*.pickle) it shows who held what.
    """
    if path is not None and is_snapshot(path):
        _check_for_snapshot(click.get_current_context())
        emit(snapshot_rendered(path, form, stacks=by == "stack", limit=limit))
        return
    reading |= {"phase": phase, "module": module, "scheduler": scheduler_address()}
    filters = filters_of(include, exclude, min_time)
    if by == "type" or aggregate is not None:
        if by not in {"operator", "type"}:
            raise OptionError("aggregate", aggregate, "goes with --by operator or type alone")
        for name, value in (("line", where), ("shapes", shapes), ("fold", fold)):
            if value:
                raise OptionError(name, value, "does not go with --aggregate or --by type")
        question = RankingQuery("type" if by == "type" else "operator", aggregate or "sum", sort or "self", filters)
        question.check()  # a wrong key fails before a long read
        emit(ranked(load(path, details=("shapes",), **reading), question, form, limit=limit))
        return
    details: list[Detail] = ["shapes"] if shapes else []
    if by == "stack":
        by, details = "operator", [*details, "stacks"]
    table(by, details).check(sort)  # a wrong key fails before a long read
    filters.check(by)
    check_view(by, phase=phase, module=module)
    if details and by != "operator":
        raise OptionError("shapes", True, "goes with --by operator or stack alone")
    reading["details"] = details
    if where is not None:
        if by != "line" or sort is not None or filters:
            raise OptionError(
                "line", where, "neither --by nor --sort goes with it, nor do --include, --exclude and --min-time"
            )
        check_line(where)
        emit(line_rendered(load(path, **reading), form, where, fold=fold, limit=limit))
        return
    if fold:
        raise OptionError("fold", True, "goes with --line alone")
    profile = load(path, has_notes=form != "csv", **reading)
    emit(rendered(profile, form, by=by, sort=sort, limit=limit, filters=filters))


_OF_SNAPSHOTS = frozenset({"path", "limit", "form"})


def _check_for_snapshot(context: click.Context) -> None:
    """Raises `OptionError` for an option that goes with traces alone."""
    for name, value in context.params.items():
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name not in _OF_SNAPSHOTS and not (name == "by" and value == "stack"):
            raise OptionError("line" if name == "where" else name, value, "goes with traces, not with memory snapshots")


def snapshot_rendered(path: str, form: str, *, stacks: bool = False, limit: int | None = None) -> str:
    """The report of a snapshot of torch's memory, in this form."""
    from deepscope.report import snapshot_report
    from deepscope.store.companion_files import load_snapshot

    found, rows = load_snapshot(path), rows_shown(limit, form)
    if form == "json":
        return snapshot_report.snapshot_json(found, limit=rows, stacks=stacks) + "\n"
    if form == "csv":
        return snapshot_report.snapshot_csv(found, limit=rows)
    return snapshot_report.snapshot_text(found, limit=rows, stacks=stacks, **terminal())


def line_rendered(profile: Profile, form: str, where: str, *, fold: bool = False, limit: int | None = None) -> str:
    """The report of the line that `where` means, in this form."""
    line = find_line(profile, where)
    rows = rows_shown(limit, form)
    if form == "json":
        return line_json(profile, line, fold=fold, limit=rows) + "\n"
    if form == "csv":
        return line_csv(profile, line, fold=fold, limit=rows)
    text = line_text(profile, line, fold=fold, limit=rows, **terminal())
    found = lines_of(profile)[line]
    return with_next(text, after_line(profile, found.file, found.line))


def ranked(profile: Profile, question: RankingQuery, form: str, *, limit: int | None) -> str:
    """Operators in sums, means or maxima over their calls, in this form."""
    found, rows = ranking(profile, question), rows_shown(limit, form)
    if form == "json":
        return ranking_json(profile, found, question, limit=rows) + "\n"
    if form == "csv":
        return ranking_csv(found, limit=rows)
    text = ranking_text(profile, found, question, limit=rows, **terminal())
    return with_next(text, after_report(profile, question.by))


def rendered(
    profile: Profile,
    form: str,
    *,
    by: str = "line",
    sort: str | None = None,
    limit: int | None = None,
    filters: Filters = NO_FILTERS,
) -> str:
    """The report in this form."""
    if form == "json":
        return json_report(profile, by=by, sort=sort, limit=rows_shown(limit, form), filters=filters) + "\n"
    if form == "csv":
        return csv_report(profile, by=by, sort=sort, limit=rows_shown(limit, form), filters=filters)
    text = text_report(profile, by=by, sort=sort, limit=rows_shown(limit), filters=filters, **terminal())
    return with_next(text, after_report(profile, by))
