"""pygls' protocol without its copy of the documents.

pygls applies each edit by writing the whole text anew, which for 10,000 lines costs more than all that this server does
with the edit. The server keeps its own buffers, so the document notifications go straight to its handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

__all__ = ["DocumentProtocol"]

Step = Generator[tuple[Callable[..., Any], tuple[Any, ...], None], Any, None]


class DocumentProtocol(LanguageServerProtocol):
    """Hands the document notifications to the handlers registered for them, and does nothing else with them."""

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
