"""A group of commands that are imported when they are run: `deepscope --help` reads this table alone."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import Literal, NamedTuple, cast, get_args

import click

Purpose = Literal["Record", "Look", "Compare", "Serve"]


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
    "compare": Entry("Compare", "deepscope.cli.compare:compare", "Show which lines became slower or faster."),
    "ranks": Entry("Compare", "deepscope.cli.ranks:ranks", "Show which rank is late, and by which line."),
    "view": Entry("Serve", "deepscope.cli.view:view", "Show runs in a browser."),
    "lsp": Entry("Serve", "deepscope.cli.lsp:lsp", "Run the language server, for editors."),
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
