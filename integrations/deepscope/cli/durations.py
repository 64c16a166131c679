"""Durations on the command line: seconds, or a number with a unit."""

from __future__ import annotations

from typing import Any

import click

from deepscope.capture.durations import seconds_of
from deepscope.cli.param_types import FloatType
from deepscope.errors import OptionError

__all__ = ["Duration", "StepsOrDuration"]


class Duration(FloatType):
    """`60`, `90s`, `1.5m`, `2h`, `500ms` as seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return seconds_of("time", value)
        except OptionError as error:
            self.fail(f"{value!r} {error.problem}", param, ctx)


class StepsOrDuration(FloatType):
    """A number of steps as an `int`, or a duration with a unit as a `float` of seconds."""

    name = "steps"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        words = str(value).strip()
        if words.isdecimal():
            return int(words)
        try:
            return seconds_of("time", value)
        except OptionError:
            self.fail(f"{value!r} must be a number of steps or, with --time, seconds such as 90s", param, ctx)
