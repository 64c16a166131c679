"""`deepscope lsp`: the language server, for editors."""

from __future__ import annotations

import importlib.util
import runpy
import sys

import click

from deepscope.errors import MissingExtraError


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lsp(arguments: tuple[str, ...]) -> None:
    """Run the language server over stdio, --tcp or --ws; `deepscope lsp --help` lists its options."""
    if importlib.util.find_spec("pygls") is None:
        raise MissingExtraError("pygls", "lsp")
    # The server stands above the command line, so it is run, not imported.
    sys.argv = ["deepscope lsp", *arguments]
    runpy.run_module("deepscope_lsp", run_name="__main__")
