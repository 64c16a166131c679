"""Document highlights: the lines of the most expensive call path through the line under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.positions import line_of, whole_line

if TYPE_CHECKING:
    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/documentHighlight`."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        document = server.document(params.text_document.uri)
        binding = document.binding if document is not None else None
        # An editor that gets such an answer shows no other highlights: no equal words, nothing of another server.
        if document is None or binding is None or not server.session.settings.highlights:
            return None
        home = binding.map.recorded_line(line_of(params.position))
        if home is None or home not in binding.file.lines:
            return None
        path = binding.index.hot_path(binding.file.path, home)
        here = {binding.map.line_of(line.line) for line in path if line.file == binding.file.path}
        return [
            types.DocumentHighlight(
                whole_line(line, document.buffer.line(line), server.units), types.DocumentHighlightKind.Text
            )
            for line in sorted(line for line in here if line is not None)
        ]
