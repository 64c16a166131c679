"""The whole server: its class with every feature registered on it, and what is logged of editors' mistakes."""

from __future__ import annotations

import json
import logging

from pygls.exceptions import JsonRpcException

from deepscope_lsp.features import (
    code_actions,
    commands,
    diagnostics,
    hovers,
    lifecycle,
    symbols,
    text_marks,
    text_sync,
    watching,
)
from deepscope_lsp.server import DeepScopeServer

FEATURES = (text_sync, text_marks, hovers, diagnostics, code_actions, symbols)
WATCHING_FEATURES = (lifecycle, commands, watching)
"""These ask for traces to be looked for."""


def create_server() -> DeepScopeServer:
    """A server with all its features, not yet started."""
    server = DeepScopeServer()
    watcher = watching.Watcher(server)
    for feature in FEATURES:
        feature.register(server)
    for watching_feature in WATCHING_FEATURES:
        watching_feature.register(server, watcher)
    return server


_EDITORS_FAULTS = (JsonRpcException, json.JSONDecodeError, UnicodeDecodeError, RecursionError)
_UNREADABLE = "Unable to deserialize message"
"""pygls puts the traceback into the words; `DocumentProtocol` says the same in one line."""


def quiet_pygls() -> None:
    """Makes the loggers of pygls' message loop say an editor's mistakes in one line."""
    for name in ("pygls.protocol.json_rpc", "pygls.io_", "pygls.server"):
        logging.getLogger(name).addFilter(_in_one_line)


def _in_one_line(record: logging.LogRecord) -> bool:
    if str(record.msg).startswith(_UNREADABLE):
        return False
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if isinstance(error, _EDITORS_FAULTS):
        record.msg, record.args = f"{record.getMessage()[:200]}: {error}", ()
        record.exc_info = record.exc_text = None
    return True
