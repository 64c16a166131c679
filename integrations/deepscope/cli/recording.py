"""The options of a recording on the command line, as `RecordingOptions` declares them.

`deepscope run` has those that change from run to run; `[tool.deepscope]` in pyproject.toml has the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from deepscope.capture.options import COUNTER_CHOICES, RecordingOptions
from deepscope.cli.durations import Duration

__all__ = ["asked_options", "given_options", "run_options"]

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULTS = {field.name: field.default for field in fields(RecordingOptions)}


def asked_options(command: Command) -> Command:
    """Adds `--topics --warmup --time --rank`, which `run` and `attach` have in common."""
    return _added(
        command,
        click.option("--topics", metavar="TOPICS", help="What is recorded: names that `deepscope run --help` lists."),
        _counted("warmup", 0, "Steps of torch's warm-up before those that are recorded."),
        click.option("--time", type=Duration(), metavar="TIME", help="Record for so long instead: 60, 90s, 2m."),
        click.option("--rank", "ranks", multiple=True, metavar="RANKS", help="Only these: 0,8-15, or hosts."),
    )


def run_options(command: Command) -> Command:
    """Adds the options of `run` alone; the command gets them by the names of `RecordingOptions`."""
    return _added(
        command,
        _counted("wait", 0, "Steps that pass unrecorded."),
        _counted("active", 1, "Steps that are recorded."),
        _counted("repeat", 0, "Cycles of these; 0 for as many as fit."),
        click.option(
            "--after",
            type=Duration(zero=True),
            metavar="TIME",
            help="With --time: how long after the first step to begin.  [default: 1s; with --whole: 0]",
        ),
        click.option(
            "--counters",
            type=click.Choice(COUNTER_CHOICES),
            help="CPU, memory, disks, network, GPUs: sampled in windows, from start to end, or not."
            f"  [default: {_DEFAULTS['counters']}]",
        ),
    )


def _counted(name: str, least: int, what: str) -> Callable[[Command], Command]:
    """A number of steps; one that is not given is left to the recording's own default."""
    return click.option(
        f"--{name}", type=click.IntRange(least), metavar="N", help=f"{what}  [default: {_DEFAULTS[name]}]"
    )


def _added(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave, as keywords for whatever records."""
    return {name: value for name, value in options.items() if value is not None and value != ()}
