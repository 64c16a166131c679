"""`deepscope compare`: which lines became slower or faster."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import click

from deepscope.cli.options import load, output_option, reading_options
from deepscope.cli.output import emit
from deepscope.errors import IncomparableError

__all__ = ["compare"]

PIPED_WIDTH = 120


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("-n", "limit", type=click.IntRange(0), default=20, show_default=True, help="Lines to show, 0 for all.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@reading_options
@output_option
def compare(*, old: str, new: str, limit: int, form: str, output: str | None, **reading: Any) -> None:
    """Show which lines became slower or faster from OLD to NEW, in device time per step.

    OLD and NEW are traces, folders or URLs. Lines are matched by file, function and text, so that an edit above them
    does no harm.
    """
    from deepscope.report.compare import comparison_object, comparison_text
    from deepscope.report.style import wants_color

    before, after = load(old, **reading), load(new, **reading)
    if before.metric != after.metric:
        cpu = old if before.metric == "cpu_self" else new
        raise IncomparableError(f"{cpu}: has no device work while the other trace has; their times cannot be compared")
    if form == "json":
        emit(json.dumps(comparison_object(before, after, limit=limit), indent=1) + "\n", output)
        return
    width = shutil.get_terminal_size((PIPED_WIDTH, 0)).columns
    color = output is None and wants_color(sys.stdout)
    emit(comparison_text(before, after, limit=limit, width=width, color=color), output)
