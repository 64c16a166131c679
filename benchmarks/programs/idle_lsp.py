"""A pygls server that answers everything with nothing: the floor of what any server written with pygls can reach."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("idle", "1")


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(_: types.HoverParams) -> None:
    return None


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
def inlay_hint(_: types.InlayHintParams) -> list[types.InlayHint]:
    return []


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
def highlight(_: types.DocumentHighlightParams) -> None:
    return None


if __name__ == "__main__":
    server.start_io()
