"""pygls' protocol without its copy of the documents, and with an answer to every request.

pygls applies each edit by writing the whole text anew, which for 10,000 lines costs more than all that this server does
with the edit. The server keeps its own buffers, so the document notifications go straight to its handlers.

A request whose parameters have another shape than the protocol's (a line of -1, a text for a number) is dropped by
pygls 2.1 with a traceback in the log, and the editor waits for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import msgspec
from cattrs import transform_error
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

log = logging.getLogger("deepscope_lsp")

REASON_LENGTH = 300

Step = Generator[tuple[Callable[..., Any], tuple[Any, ...], None], Any, None]


@dataclass(frozen=True, slots=True)
class Refused:
    """Stands for a message that needs no handler: it was answered already, or cannot be."""


class DocumentProtocol(LanguageServerProtocol):
    """Hands the document notifications to the handlers registered for them, and does nothing else with them."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as its type. One of another shape is refused; a request is answered with an error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            method, number = data.get("method"), data.get("id")
            words = f"{method}: {_reason(error)}"
            log.warning("%s", words)
            if isinstance(method, str) and isinstance(number, (int, str)):
                self._send_response(number, error=JsonRpcInvalidParams(words).to_response_error())
            return Refused()

    def _serialize_message(self, data: Any) -> Any:
        """Serializes what is sent; this server's answers are structs."""
        return msgspec.to_builtins(data) if isinstance(data, msgspec.Struct) else super()._serialize_message(data)

    def handle_message(self, message: Any) -> None:
        """Hands a message to its handler; what is not a message of the protocol is left alone."""
        if isinstance(message, Refused):
            return
        if not hasattr(message, "jsonrpc"):
            log.warning("no message of the protocol: %s", repr(message)[:REASON_LENGTH])
            return
        super().handle_message(message)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Step:
        """A text was opened."""
        yield from self._handed_on(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Step:
        """A text was edited."""
        yield from self._handed_on(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Step:
        """A text was closed."""
        yield from self._handed_on(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> Step:
        """A notebook was opened."""
        yield from self._handed_on(types.NOTEBOOK_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> Step:
        """Cells of a notebook were edited, added or removed."""
        yield from self._handed_on(types.NOTEBOOK_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> Step:
        """A notebook was closed."""
        yield from self._handed_on(types.NOTEBOOK_DOCUMENT_DID_CLOSE, params)

    def _handed_on(self, method: str, params: object) -> Step:
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, (params,), None


def _reason(error: JsonRpcException) -> str:
    cause = error.__cause__
    words = "; ".join(transform_error(cause)) if cause is not None else str(error)
    return words[:REASON_LENGTH]
