"""What `deepscope try` and `deepscope verify` have in common: a program behind `--`, a budget, the user's consent."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deepscope.cli.options import FOLDERS
from deepscope.cli.output import form_option
from deepscope.cli.param_types import Duration
from deepscope.errors import DeepScopeError, MissingExtraError
from deepscope.printable import printable

if TYPE_CHECKING:
    from deepscope.records.tries import Try
    from deepscope.store import Profile
    from deepscope.trials.runs import Command, Runs

Function = TypeVar("Function", bound=Callable[..., Any])


class ProgramCommand(click.Command):
    """A command with its own words before `--` and a program behind it, which comes as `program`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """All before `--`; what stands behind is the program's."""
        place = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:place])
        ctx.params["program"] = tuple(args[place + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """With the program."""
        return [*super().collect_usage_pieces(ctx), "-- PROGRAM [ARGUMENTS]..."]


def trial_options(command: Function) -> Function:
    """Adds `--trace --steps --budget --yes --format`."""
    options = (
        click.option(
            "--trace", metavar="PATH", help="Keep the results beside it.  [default: the newest, if of this program]"
        ),
        click.option(
            "--steps", type=click.IntRange(3), metavar="N", help="Timed steps of each run.  [default: by their length]"
        ),
        click.option(
            "--budget",
            type=Duration(),
            default="5m",
            show_default=True,
            metavar="TIME",
            help="The longest it may take.",
        ),
        click.option("--yes", is_flag=True, help="Do not ask before the program runs."),
        form_option("text", "json"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def parsed_program(words: Sequence[str]) -> Command:
    """The program behind `--`.

    Raises:
        DeepScopeError: there is no such file.
        UsageError: no program is given.
    """
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "torch")
    from deepscope.trials.runs import Command

    if not words:
        raise click.UsageError("no program: it stands behind `--`, as in `-- train.py --epochs 1`")
    command = Command.parsed(words, working=Path.cwd())
    command.check()
    return command


def ask_consent(command: Command, *, yes: bool, what: str) -> None:
    """Say what the program may still write, and go on if the user agrees."""
    from deepscope.trials.consent import may_write

    for line in (what, *may_write(command)):
        tell(line)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask at: --yes agrees")
    click.confirm("Run it?", abort=True, err=True, default=True)


@contextmanager
def runs_of(command: Command, budget_s: float) -> Iterator[Runs]:
    """Runs within a budget that begins now; afterwards, what they wrote elsewhere is told."""
    from deepscope.trials.runs import Runs

    runs = Runs(command, time.monotonic() + budget_s)
    try:
        yield runs
    finally:
        runs.close()
        for path in runs.written:
            tell(f"the program wrote {path}")


def trace_of(command: Command, path: str | None) -> Profile | None:
    """The profile of a trace that is named, else of the newest one in the usual folders if it is of the program.

    Raises:
        TraceError: the trace that is named cannot be read.
    """
    from deepscope.store import load_profile
    from deepscope.store.runs import newest_folder

    if path is not None:
        return load_profile(path)
    try:
        profile = load_profile(newest_folder(FOLDERS))
    except DeepScopeError:
        return None
    return profile if Path(profile.trace.program).name == Path(command.target).name else None


def keep_beside(profile: Profile | None, rows: Sequence[Try]) -> None:
    """Keep what was tried beside the trace, where there is one on this machine."""
    from deepscope.store.beside import keep_tries

    if profile is None or not Path(profile.trace.path).is_file():
        return
    try:
        keep_tries(Path(profile.trace.path), [one for one in rows if one.speedup is not None])
    except OSError as error:
        tell(f"what was tried is not kept beside the trace: {error.strerror or error}")


def tell(text: str) -> None:
    """Progress, on standard error."""
    click.echo(f"deepscope: {printable(text)}", err=True)
