"""What pygls logs, without the tracebacks for an editor's mistakes: they say nothing of this server."""

from __future__ import annotations

import json
import logging

from pygls.exceptions import JsonRpcException

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
