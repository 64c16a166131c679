"""`deepscope export`: call paths for other viewers."""

from __future__ import annotations

from typing import Any

import click

from deepscope.cli.options import load, output_option, reading_options
from deepscope.cli.output import emit
from deepscope.report.paths import DEPTHS, Depth

__all__ = ["export"]


@click.command()
@click.argument("path", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["speedscope", "folded"]),
    default="speedscope",
    show_default=True,
    help="A file for https://www.speedscope.app, or folded stacks for flame graph scripts.",
)
@click.option(
    "--depth",
    type=click.Choice(DEPTHS),
    default="kernel",
    show_default=True,
    help="How far below your lines the call paths go.",
)
@reading_options
@output_option
def export(path: str | None, form: str, depth: Depth, output: str | None, **reading: Any) -> None:
    """Write the call paths with their device time for another viewer."""
    profile = load(path, **reading)
    if form == "speedscope":
        from deepscope.report.speedscope import speedscope_report

        emit(speedscope_report(profile, depth) + "\n", output)
    else:
        from deepscope.report.folded import folded_report

        emit(folded_report(profile, depth), output)
