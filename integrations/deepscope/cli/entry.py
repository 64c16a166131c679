"""Where the command starts and ends: commands imported when they run, errors as one line, libraries' logs in a file."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TextIO, cast, get_args

import click

from deepscope.errors import DeepScopeError

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
"""By which Dask's own programs find a scheduler."""

_READING = frozenset({"compare", "export", "ranks", "report", "view"})
"""The commands that run no program of the user's, whose logs are its own."""
_STORES = ("adlfs", "aiobotocore", "aiohttp", "asyncio", "azure", "botocore", "fsspec", "gcsfs", "s3fs")
_CLUSTER = ("distributed", "tornado")


def keep_apart(arguments: Sequence[str]) -> None:
    """Sends these logs to `libraries.log` in the cache folder where the arguments name a remote store or a cluster."""
    if not arguments or arguments[0] not in _READING:
        return
    has_cluster = bool(os.environ.get(SCHEDULER_VARIABLE))
    if not has_cluster and not any("://" in one for one in arguments):
        return
    import logging.config

    from deepscope.store.cache import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(folder, os.W_OK)
    except OSError:
        is_writable = False
    handler = (
        {"class": "logging.FileHandler", "filename": str(folder / "libraries.log"), "delay": True, "encoding": "utf-8"}
        if is_writable
        else {"class": "logging.NullHandler"}
    )
    settings = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"kept": handler},
        "loggers": {name: {"handlers": ["kept"], "propagate": False} for name in (*_STORES, *_CLUSTER)},
    }
    logging.config.dictConfig(settings)
    if has_cluster:
        try:
            import dask
        except ImportError:
            return
        dask.config.set({"logging": settings})  # `distributed` sets up its loggers anew when it is imported


Purpose = Literal["Record", "Look", "Try", "Compare", "Serve"]


class Entry(NamedTuple):
    """Where a command is defined, and what the list of commands says of it."""

    purpose: Purpose
    where: str
    """`module:attribute`."""
    summary: str


COMMANDS = {
    "run": Entry("Record", "deepscope.cli.run:run", "Run a program, record some of its steps and show its hot lines."),
    "attach": Entry("Record", "deepscope.cli.attach:attach", "Record some steps of a job that is already running."),
    "demo": Entry("Record", "deepscope.cli.demo:demo", "Train a small model with profiler='deep', show its hot lines."),
    "report": Entry("Look", "deepscope.cli.report:report", "Show the lines of code that cost the device time."),
    "export": Entry("Look", "deepscope.cli.export:export", "Write tables, call paths, a timeline or a page."),
    "model": Entry("Look", "deepscope.cli.model:model", "Count a model's parameters, FLOPs and activations."),
    "try": Entry("Try", "deepscope.cli.trials:try_remedies", "Run a program with remedies, say what each gains."),
    "verify": Entry("Try", "deepscope.cli.trials:verify", "Run two revisions of a program, say whether it is faster."),
    "compare": Entry("Compare", "deepscope.cli.compare:compare", "Show which lines became slower or faster."),
    "ranks": Entry("Compare", "deepscope.cli.ranks:ranks", "Show which rank is late, and by which line."),
    "view": Entry("Serve", "deepscope.cli.servers:view", "Show runs in a browser."),
    "lsp": Entry("Serve", "deepscope.cli.servers:lsp", "Run the language server, for editors."),
    "mcp": Entry("Serve", "deepscope.cli.servers:mcp", "Answer coding assistants over the Model Context Protocol."),
    "skill": Entry("Serve", "deepscope.cli.skill:skill", "Teach coding assistants to use DeepScope."),
}


class LazyGroup(click.Group):
    """Looks commands up in `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].where.partition(":")
        return cast(click.Command, getattr(importlib.import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        width = max(map(len, COMMANDS))
        for purpose in get_args(Purpose):
            with formatter.section(purpose):
                listed = [(name, entry.summary) for name, entry in COMMANDS.items() if entry.purpose == purpose]
                formatter.write_dl([(name.ljust(width), summary) for name, summary in listed])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            nearest = get_close_matches(name, COMMANDS, 1)
            others = f"did you mean {nearest[0]}?" if nearest else f"there are: {', '.join(COMMANDS)}"
            ctx.fail(f"no such command: {name}; {others}")
        return super().resolve_command(ctx, args)


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

    0 is success, 1 an error, shown in one line, 2 a wrong use of the command, 130 an interruption.
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
    from deepscope.cli.output import tell

    tell(message)
    return code
