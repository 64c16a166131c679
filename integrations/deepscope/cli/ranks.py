"""`deepscope ranks`: the ranks of a run side by side."""

from __future__ import annotations

import click

from deepscope.cli.options import FOLDERS, reading_options, scheduler_address, use_one_thread
from deepscope.cli.output import Bar, emit, form_option, rows_option, rows_shown, terminal, warn
from deepscope.printable import without_secrets
from deepscope.store.selection import newest_folder

BY = ("rank", "collective", "group", "pair", "operator", "line", "straggler", "clock", "domain", "link")


def _named(paths: list[str]) -> str:
    """The paths as the report names them."""
    return without_secrets(paths[0]) + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--by", type=click.Choice(BY), help="One table whole, in place of the overview; of CSV: rank by default.")
@rows_option
@click.option("--rank", type=click.IntRange(0), help="One rank in detail, beside the median of the others.")
@reading_options("step", "stage", "partial")
@form_option("text", "json", "csv")
def ranks(
    *,
    paths: tuple[str, ...],
    by: str | None,
    limit: int | None,
    rank: int | None,
    step: int | None,
    stage: str | None,
    partial: bool,
    form: str,
) -> None:
    """Show ranks side by side: who holds the others up and by which line, compute, communication, idle time.

    PATH is a folder (its newest run), a trace, a URL or a pattern; several are one run. By default the newest run in
    deepscope_logs, lightning_logs or runs.
    """
    use_one_thread()
    where = list(paths) or [newest_folder(FOLDERS)]
    from deepscope.cli.next_step import after_ranks, with_next
    from deepscope.ranks.rank_detail import rank_detail
    from deepscope.ranks.side_by_side import side_by_side
    from deepscope.report import ranks as forms
    from deepscope.store.ranks import read_ranks

    if rank is not None and by is not None:
        forms.check_detail(by)
    with Bar() as progress:
        read = read_ranks(
            where, step=step, stage=stage, partial=partial, scheduler=scheduler_address(), progress=progress
        )
    warn(read.skipped)
    report = side_by_side(read.summaries, read.failures, _named(where))
    detail = None if rank is None else rank_detail(read.summaries, report, rank)
    rows = rows_shown(limit, form)
    if form == "json":
        text = forms.ranks_json(report, limit=rows) if detail is None else forms.rank_json(detail, limit=rows)
    elif form == "csv":
        table = by or "rank"
        text = (
            forms.ranks_csv(report, by=table, limit=rows)
            if detail is None
            else forms.rank_csv(detail, by=table, limit=rows)
        )
    else:
        shown = limit if by is None else rows  # without --by each section has a length of its own
        text = (
            forms.ranks_text(report, by=by, limit=shown, **terminal())
            if detail is None
            else forms.rank_text(detail, report, limit=limit, **terminal())
        )
        text = with_next(text, "" if detail is not None else after_ranks(report, where))
    emit(text)
