"""`deepscope view`, `lsp` and `mcp`: the commands that serve a browser, an editor or a coding assistant."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import runpy
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from typing import Any

import click

from deepscope.cli.options import FOLDERS, reading_options
from deepscope.errors import DeepScopeError, MissingExtraError, NoTraceError
from deepscope.printable import printable
from deepscope.processes import end_all
from deepscope.trace.kineto.remote import is_url

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  the address from here


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; 0 for any that is free.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Another address lets other machines in; 0.0.0.0 for all."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@reading_options("partial", "peaks")
def view(paths: tuple[str, ...], *, port: int, host: str, no_browser: bool, partial: bool, peaks: str) -> None:
    """Show runs in a browser: lines, flame graph, timeline, operators, memory, findings.

    PATH is a trace, a folder of runs or an fsspec URL; without one the newest of the usual folders is taken. With - the
    server shows what its standard input says, and ends with it (for editors). The address is printed alone on a line
    once it answers. Ctrl-C ends the server.
    """
    import secrets

    from deepscope.analysis.peaks import given_peaks
    from deepscope.dashboard.application import Application
    from deepscope.dashboard.library import Library
    from deepscope.dashboard.server import Pages, follow, follow_line, serve
    from deepscope.store.selection import newest_folder

    given_peaks(peaks)  # what cannot be read fails at once
    follows_input = "-" in paths
    if follows_input and len(paths) > 1:
        raise click.UsageError("- stands alone: standard input says what is shown")
    library = Library(() if follows_input else paths or (newest_folder(FOLDERS),), partial=partial, peaks=peaks)
    if not follows_input:
        library.runs()
    token = secrets.token_urlsafe(24)
    hosts = {*LOOPBACK, host} if _is_loopback(host) else set()
    pages = Pages(Application(library), token=token, hosts=hosts)
    if follows_input:
        follow_line(sys.stdin.buffer.readline(), library, pages)
    try:
        server = serve(pages, host, port)
    except OSError as error:
        hint = "; try --port 0" if error.errno in {errno.EADDRINUSE, errno.EACCES} else ""
        raise DeepScopeError(f"{printable(_url(host, port))}: {error.strerror or error}{hint}") from error
    address = f"http://{_url(ANY.get(host, host), server.server_port)}/?token={token}"
    if not hosts:
        click.echo(
            "Warning: whoever can reach this machine and has the address can see the traces and their source text.\n"
            "What is sent is not encrypted; ssh -L (docs/dashboard.md) is, and needs no --host.",
            err=True,
        )
        if host in ANY:
            click.echo(
                f"From other machines: http://{_url(gethostname(), server.server_port)}/?token={token}", err=True
            )
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _ended)
    click.echo(address)
    sys.stdout.flush()
    if follows_input:
        callbacks = {"shown": lambda: click.echo("shown"), "ended": server.shutdown}
        threading.Thread(target=follow, args=(sys.stdin.buffer, library, pages), kwargs=callbacks, daemon=True).start()
    if not no_browser:
        threading.Thread(target=_open, args=(address,), daemon=True).start()
    try:
        server.serve_forever(poll_interval=0.5)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        library.close()
        end_all()


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK


def _url(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _open(address: str) -> None:
    """In a process of its own: what browsers print is not for this terminal, nor is a browser of text in it."""
    import subprocess

    command = [sys.executable, "-I", "-m", "webbrowser", address]
    nowhere = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.run(  # noqa: S603  this very interpreter
            command, stdin=nowhere, stdout=nowhere, stderr=nowhere, check=False, start_new_session=True
        )


def _ended(*_: Any) -> None:
    raise KeyboardInterrupt


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lsp(arguments: tuple[str, ...]) -> None:
    """Run the language server over stdio, --tcp or --ws; `deepscope lsp --help` lists its options."""
    if importlib.util.find_spec("pygls") is None:
        raise MissingExtraError("pygls", "lsp")
    # The server stands above the command line, so it is run, not imported.
    sys.argv = ["deepscope lsp", *arguments]
    runpy.run_module("deepscope_lsp", run_name="__main__")


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
