"""Notebooks: each code cell is a text of its own, known by its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.features.text_sync import close_text, edit_text, open_text

if TYPE_CHECKING:
    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `notebookDocument/didOpen`, `didChange`, `didClose`."""

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
