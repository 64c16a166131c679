"""Where the command starts and ends: errors become one line and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import click

from deepscope.cli.group import LazyGroup
from deepscope.cli.library_logs import SCHEDULER_VARIABLE, keep_apart
from deepscope.errors import DeepScopeError

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"deepscope {version('deepscope')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def deepscope() -> None:
    """Device time at the line of your PyTorch code that costs it."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits.

    0 is success, 1 an error that is told in one line, 2 a wrong use of the command, 130 an interruption.
    """
    # Without a standard stream (`>&-`, a program without a console) what goes there goes nowhere.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows "?" and goes on
    keep_apart(sys.argv[1:] if arguments is None else arguments)
    sys.exit(_run(arguments))


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = deepscope.main(arguments, prog_name="deepscope", standalone_mode=False)
    except click.exceptions.Abort:  # Ctrl-C, as click passes it on
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except DeepScopeError as error:
        return _print_error(error.message(_as_option), error.exit_code)
    except MemoryError:
        return _print_error("not enough memory for this trace", 1)
    return code if isinstance(code, int) else 0


_WORDS = {"ranks": "rank"}
"""Options that have another name in Python."""


def _as_option(name: str, value: object) -> str:
    """An option of the library as the command has it: `--rank 3`."""
    if name == "scheduler":
        return f"{SCHEDULER_VARIABLE}={value}"
    words = f"--{_WORDS.get(name, name).replace('_', '-')}"
    return words if value is True else f"{words} {value}"


def _print_error(message: str, code: int) -> int:
    from deepscope.printable import printable

    click.echo(f"deepscope: {printable(message)}", err=True)
    return code
