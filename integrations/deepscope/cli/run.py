"""`deepscope run`: records a program without a change to it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import click

from deepscope.capture.topics import help_text
from deepscope.cli.output import emit
from deepscope.cli.recording import given_options, recording_options
from deepscope.cli.report import rendered
from deepscope.errors import MissingExtraError
from deepscope.store import load_profile

__all__ = ["run"]

_FOLDER = Path("deepscope_logs")
_PACKAGE = Path(__file__).resolve().parents[1]


class _WithTopics(click.Command):
    """Lists the topics behind the options; a terminal's width is kept there already."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        formatter.write(f"\n{help_text()}\n")


@click.command(cls=_WithTopics, context_settings={"allow_interspersed_args": False})
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module, as in `python -m`.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where the traces are written.",
)
@click.option("--whole", is_flag=True, help="Record from start to end instead: for programs without an optimizer.")
@click.option(
    "--name", metavar="TEMPLATE", help="Of the traces' names, such as '{program}-{stage}-{rank}'.  [default: host_pid]"
)
@recording_options
@click.option("-n", "limit", type=click.IntRange(0), default=10, show_default=True, help="Rows to show, 0 for all.")
@click.option("-q", "--quiet", is_flag=True, help="Show nothing; the trace is written.")
def run(
    program: str,
    arguments: tuple[str, ...],
    *,
    is_module: bool,
    folder: Path,
    whole: bool,
    name: str | None,
    limit: int,
    quiet: bool,
    **options: Any,
) -> None:
    """Run PROGRAM with its ARGUMENTS as Python would, record some of its training steps, and print the hot lines.

    A step ends with each step of the program's torch optimizer. A program that records itself
    (`Trainer(profiler="deep")`, `deepscope.profile`) is run as it is. Options of `deepscope run` stand before PROGRAM.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "torch")
    from deepscope.capture.program import Program, record_steps, record_whole
    from deepscope.capture.surroundings.open_recorders import fail

    recording = (record_whole if whole else record_steps)(folder, name=name, **given_options(options))
    try:
        start = Program(program, arguments, is_module).prepared()
    except SyntaxError as error:
        sys.exit(_tell(error))
    code = 0
    with recording as traces:
        try:
            start()
        except SystemExit as ended:
            code = _exit_code(ended)
        except Exception as error:  # noqa: BLE001  the program's own, told as Python tells it
            fail(error)
            code = _tell(error)
    if traces:
        if not quiet:
            click.echo()
            emit(rendered(load_profile(traces[-1]), "text", limit=limit), None)
    elif not whole and "deepscope.capture.recorder" not in sys.modules:
        click.echo("deepscope: nothing was recorded: no torch optimizer made a step; --whole records all", err=True)
    sys.exit(code)


def _exit_code(ended: SystemExit) -> int:
    """What Python makes of `sys.exit(…)`."""
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    click.echo(str(ended.code), err=True)
    return 1


def _tell(error: Exception) -> int:
    """Prints a traceback that begins in the program, as without DeepScope around it."""
    traceback = error.__traceback__
    while traceback is not None and _is_around(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    return 1


def _is_around(file: str) -> bool:
    return file.startswith("<frozen ") or Path(file).name == "runpy.py" or Path(file).is_relative_to(_PACKAGE)
