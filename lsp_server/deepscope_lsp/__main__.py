"""`python -m deepscope_lsp`: the server over stdio, TCP or a WebSocket."""

from __future__ import annotations

import argparse
import gc
import logging
import sys


def main(arguments: list[str] | None = None) -> int:
    """Runs the server until the editor ends it; answers the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(name)s %(levelname)s %(message)s", stream=sys.stderr
    )
    if options.log_level != "debug":
        logging.getLogger("pygls").setLevel(logging.ERROR)  # it logs every message in full
    try:
        from deepscope_lsp.features import create_server
        from deepscope_lsp.server import quiet_pygls
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"pygls", "lsprotocol", "cattrs", "attrs"}:
            raise
        sys.stderr.write("deepscope: the language server needs pygls; run: pip install 'deepscope[lsp]'\n")
        return 1
    # The protocol's types are a hundred thousand objects that live for ever; the collector can leave them out.
    gc.disable()
    if options.log_level != "debug":
        quiet_pygls()
    server = create_server()
    gc.enable()
    gc.freeze()
    if options.ws:
        server.start_ws(options.host, options.port)
    elif options.tcp:
        server.start_tcp(options.host, options.port)
    else:
        server.start_io()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="deepscope lsp", description="DeepScope's language server")
    transport = parser.add_mutually_exclusive_group()
    transport.add_argument("--stdio", action="store_true", help="talk over standard input and output (the default)")
    transport.add_argument("--tcp", action="store_true", help="wait for an editor on a TCP port")
    transport.add_argument("--ws", action="store_true", help="wait for an editor on a WebSocket")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8765, help="port to listen on (default: %(default)s)")
    parser.add_argument(
        "--log-level",
        choices=["debug", "info", "warning", "error"],
        default="warning",
        help="what goes to standard error (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
