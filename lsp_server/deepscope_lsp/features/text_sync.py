"""Open, edit and close texts; each edit moves the recorded lines with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.engine.binding import Mark
from deepscope_lsp.engine.session import Document
from deepscope_lsp.engine.source_files import Buffer, to_path
from deepscope_lsp.features import diagnostics
from deepscope_lsp.features.editor_requests import ask, refresh
from deepscope_lsp.positions import apply_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/didOpen`, `didChange`, `didClose`, and the same of notebooks."""
    _register_notebooks(server)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        open_text(server, item.uri, item.text, item.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        edit_text(server, params.text_document.uri, params.content_changes, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        close_text(server, params.text_document.uri)


def open_text(server: DeepScopeServer, uri: str, text: str, version: int | None) -> None:
    """Takes a text in; asks where it may be one of several recorded files."""
    question = server.session.open(Document(uri, to_path(uri), Buffer(text), version))
    if question is not None:
        ask(server, question)
    diagnostics.publish(server, server.session.documents[uri])


def edit_text(
    server: DeepScopeServer, uri: str, changes: Sequence[types.TextDocumentContentChangeEvent], version: int | None
) -> None:
    """Applies edits in their order."""
    document = server.document(uri)
    if document is None:
        return
    for change in changes:
        document.apply(apply_change(document.buffer, change, server.units))
    document.version = version
    diagnostics.publish_soon(server, document)
    if document.binding is not None and document.binding.mark is Mark.OTHER_TEXT:
        server.when_quiet(document, lambda: _bind_again(server, document))


def _bind_again(server: DeepScopeServer, document: Document) -> None:
    """Binds anew where an edit has brought the recorded text back: its numbers need no mark then."""
    if document.binding is not None and document.binding.may_be_what_ran:
        server.session.rebind(document)
        refresh(server)


def close_text(server: DeepScopeServer, uri: str) -> None:
    """Forgets a text."""
    document = server.session.documents.pop(uri, None)
    if document is not None:
        diagnostics.clear(server, document)


def _register_notebooks(server: DeepScopeServer) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            open_text(server, cell.uri, cell.text, cell.version)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            for closed in cells.structure.did_close or ():
                close_text(server, closed.uri)
            for opened in cells.structure.did_open or ():
                open_text(server, opened.uri, opened.text, opened.version)
        for content in cells.text_content or ():
            edit_text(server, content.document.uri, content.changes, content.document.version)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            close_text(server, cell.uri)
