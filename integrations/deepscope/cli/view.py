"""`deepscope view`: the dashboard in a browser."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

import click

from deepscope.cli.options import FOLDERS
from deepscope.errors import DeepScopeError
from deepscope.printable import printable

__all__ = ["view"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; 0 for any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address lets other machines in.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--partial", is_flag=True, help="Read what is whole of a trace that ends early.")
@click.option("--peaks", default="", help="What the device can do at best: fp32=67,bf16=989,bandwidth=3.35.")
@click.option("--follow-stdin", is_flag=True, help="For editors: shows what standard input says, and ends with it.")
def view(
    paths: tuple[str, ...], *, port: int, host: str, no_browser: bool, partial: bool, peaks: str, follow_stdin: bool
) -> None:
    """Show runs in a browser: lines, flame graph, timeline, operators, memory, findings.

    PATH is a trace, a folder of runs or an fsspec URL; without one the newest of the usual folders is taken. The
    address is printed alone on a line once it answers. Ctrl-C ends the server.
    """
    import secrets

    from deepscope.analysis.peaks import given_peaks
    from deepscope.dashboard.application import Application
    from deepscope.dashboard.follow import follow, follow_line
    from deepscope.dashboard.library import Library
    from deepscope.dashboard.server import Pages, serve
    from deepscope.store.runs import newest_folder

    given_peaks(peaks)  # what cannot be read is told at once
    library = Library(paths or (() if follow_stdin else (newest_folder(FOLDERS),)), partial=partial, peaks=peaks)
    if not follow_stdin:
        library.runs()
    token = secrets.token_urlsafe(24)
    hosts = {name for name in LOOPBACK if host in LOOPBACK}
    pages = Pages(Application(library), token=token, hosts=hosts)
    if follow_stdin:
        follow_line(sys.stdin.buffer.readline(), library, pages)
    try:
        server = serve(pages, host, port)
    except OSError as error:
        raise DeepScopeError(f"{printable(host)}:{port}: {error.strerror or error}; try --port 0") from error
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{server.server_port}/?token={token}"
    if not hosts:
        click.echo(
            "Warning: whoever can reach this machine and has the address can see the traces and their source text.",
            err=True,
        )
    signal.signal(signal.SIGTERM, _ended)
    click.echo(address)
    sys.stdout.flush()
    if follow_stdin:
        told = {"shown": lambda: click.echo("shown"), "ended": server.shutdown}
        threading.Thread(target=follow, args=(sys.stdin.buffer, library, pages), kwargs=told, daemon=True).start()
    if not no_browser:
        threading.Thread(target=_open, args=(address,), daemon=True).start()
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        library.close()


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)


def _ended(*_: Any) -> None:
    raise KeyboardInterrupt
