"""`deepscope mcp`: runs as tools of the Model Context Protocol, for coding assistants."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import click

from deepscope.cli.options import FOLDERS
from deepscope.errors import MissingExtraError, NoTraceError
from deepscope.trace.kineto.remote import is_url


@click.command()
@click.argument("folders", nargs=-1, metavar="[FOLDER]…")
@click.option(
    "--allow-run", is_flag=True, help="Let the assistant run programs below this folder: record, try, verify."
)
def mcp(folders: tuple[str, ...], *, allow_run: bool) -> None:
    """Serve the runs in FOLDERs to a coding assistant over stdio, by the Model Context Protocol.

    By default these are deepscope_logs, lightning_logs and runs. No tool reads a trace elsewhere. docs/assistants.md
    says how each assistant is set up.
    """
    for folder in folders:
        if not is_url(folder) and not Path(folder).is_dir():
            raise NoTraceError(f"{folder}: no such folder")
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("mcp", "mcp")
    # The server stands above the command line, whose words it uses, so it is imported by its name.
    importlib.import_module("deepscope.mcp_server.server").serve(folders or FOLDERS, allow_run=allow_run)
