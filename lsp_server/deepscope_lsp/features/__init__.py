"""Thin handlers between the protocol and the engine, one file a feature; the server with all of them."""

from __future__ import annotations

from deepscope_lsp.features import commands, diagnostics, hovers, lifecycle, symbols, text_marks, text_sync, watching
from deepscope_lsp.server import DeepScopeServer


def create_server() -> DeepScopeServer:
    """A server with all its features, not yet started."""
    server = DeepScopeServer()
    watcher = watching.Watcher(server)
    for feature in (text_sync, text_marks, hovers, diagnostics, symbols):
        feature.register(server)
    for watching_feature in (lifecycle, commands, watching):
        watching_feature.register(server, watcher)
    return server
