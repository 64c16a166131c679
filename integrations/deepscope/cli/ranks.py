"""`deepscope ranks`: the ranks of a run side by side."""

from __future__ import annotations

import os
import shutil
import sys

import click

from deepscope.cli.options import FOLDERS, output_option, scheduler_option
from deepscope.cli.output import emit, warn
from deepscope.cli.progress import Bar
from deepscope.printable import without_secrets
from deepscope.processes import ONE_THREAD
from deepscope.store.runs import newest_folder

__all__ = ["ranks"]

PIPED_WIDTH = 120
BY = ("rank", "collective", "group", "pair", "operator", "line", "straggler", "clock", "domain", "link")


def _named(paths: list[str]) -> str:
    """The paths as the report names them."""
    return without_secrets(paths[0]) + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--by", type=click.Choice(BY), help="One table whole, in place of the overview; of CSV: rank by default.")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(0),
    help="Rows of each table, 0 for all.  [default: what fits a screen; json, csv, --by: all]",
)
@click.option("--rank", type=click.IntRange(0), help="One rank in detail, beside the median of the others.")
@click.option("--step", type=int, help="Only this step (the N of ProfilerStep#N).")
@click.option("--stage", help="Another stage of the run: validate, test, predict, sanity_check.")
@click.option("--partial", is_flag=True, help="Of traces that end early, read what is whole.")
@click.option("--no-cache", is_flag=True, help="Read the traces themselves and keep nothing.")
@scheduler_option
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@output_option
def ranks(
    *,
    paths: tuple[str, ...],
    by: str | None,
    limit: int | None,
    rank: int | None,
    step: int | None,
    stage: str | None,
    partial: bool,
    no_cache: bool,
    scheduler: str,
    form: str,
    output: str | None,
) -> None:
    """Show ranks side by side: who holds the others up and by which line, compute, communication, idle time.

    PATH is a folder (its newest run), a trace, a URL or a pattern; several are one run. By default the newest run in
    deepscope_logs, lightning_logs or runs.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    where = list(paths) or [newest_folder(FOLDERS)]
    from deepscope.ranks.detail import rank_detail
    from deepscope.ranks.side_by_side import side_by_side
    from deepscope.report import ranks as forms
    from deepscope.report.style import wants_color
    from deepscope.store.ranks import read_ranks

    if rank is not None and by is not None:
        forms.check_detail(by)
    with Bar() as progress:
        read = read_ranks(
            where,
            step=step,
            stage=stage,
            partial=partial,
            cache=not no_cache,
            scheduler=scheduler,
            progress=progress,
        )
    warn(read.skipped)
    report = side_by_side(read.summaries, read.failures, _named(where))
    detail = None if rank is None else rank_detail(read.summaries, report, rank)
    rows = limit or 0
    if form == "json":
        told = forms.ranks_json(report, limit=rows) if detail is None else forms.rank_json(detail, limit=rows)
    elif form == "csv":
        table = by or "rank"
        told = (
            forms.ranks_csv(report, by=table, limit=rows)
            if detail is None
            else forms.rank_csv(detail, by=table, limit=rows)
        )
    else:
        width = shutil.get_terminal_size((PIPED_WIDTH, 0)).columns
        color = output is None and wants_color(sys.stdout)
        told = (
            forms.ranks_text(report, by=by, limit=limit, width=width, color=color)
            if detail is None
            else forms.rank_text(detail, report, limit=limit, width=width, color=color)
        )
    emit(told, output)
