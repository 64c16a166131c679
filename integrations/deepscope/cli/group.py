"""A group of commands that are imported when they are run: `deepscope --help` reads this table alone."""

from __future__ import annotations

import importlib
from typing import NamedTuple, cast

import click

__all__ = ["COMMANDS", "Entry", "LazyGroup"]


class Entry(NamedTuple):
    """Where a command is defined, and what the list of commands says of it."""

    where: str
    """`module:attribute`."""
    summary: str


COMMANDS = {
    "run": Entry("deepscope.cli.run:run", "Run a program, record some of its steps and show its hot lines."),
    "attach": Entry("deepscope.cli.attach:attach", "Record some steps of a job that is already running."),
    "report": Entry("deepscope.cli.report:report", "Show the lines of code that cost the device time."),
    "top": Entry("deepscope.cli.top:top", "Show the slowest operators, by name or by type."),
    "ranks": Entry("deepscope.cli.ranks:ranks", "Show ranks side by side: which one is late, and by which line."),
    "view": Entry("deepscope.cli.view:view", "Show runs in a browser: lines, timeline, flame graph, memory, findings."),
    "export": Entry(
        "deepscope.cli.export:export", "Write a profile for other tools: tables, call paths, a timeline, a page."
    ),
    "compare": Entry("deepscope.cli.compare:compare", "Show which lines became slower or faster between two traces."),
    "model": Entry("deepscope.cli.model:model", "Count a model's parameters, FLOPs and activations without a trace."),
    "lsp": Entry("deepscope.cli.lsp:lsp", "Run the language server, for editors."),
    "demo": Entry("deepscope.cli.demo:demo", "Train a small model with profiler='deep' and show its hot lines."),
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
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"no such command: {name}; there are: {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)
