"""The options of a recording on the command line, as `RecordingOptions` declares them.

`deepscope run` has those that change from run to run; `[tool.deepscope]` in pyproject.toml has the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from deepscope.capture.options import OPTIONS
from deepscope.cli.options import Duration
from deepscope.cli.output import Function, with_options


def _declared(name: str, word: str = "", **settings: Any) -> Callable[[Function], Function]:
    """An option as it is declared; what is not given is left to the recording's own default."""
    default = OPTIONS[name].default
    default_text = "" if default is None or default is False else f"  [default: {default}]"
    return click.option(f"--{word or name}", name, help=OPTIONS[name].metadata["what"] + default_text, **settings)


asked_options = with_options(
    _declared("topics", metavar="TOPICS"),
    _declared("warmup", type=click.IntRange(0), metavar="N"),
    _declared("time", type=Duration(), metavar="TIME"),
    _declared("ranks", "rank", multiple=True, metavar="RANKS"),
)
"""Adds `--topics --warmup --time --rank`, which `run` and `attach` have in common."""

run_options = with_options(
    _declared("wait", type=click.IntRange(0), metavar="N"),
    _declared("active", type=click.IntRange(1), metavar="N"),
    _declared("after", type=Duration(zero=True), metavar="TIME"),
    _declared("audit", is_flag=True, default=None),
)
"""Adds the options of `run` alone; the command gets them by the names of `RecordingOptions`."""


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave, as keywords for whatever records."""
    return {name: value for name, value in options.items() if value is not None and value != ()}
