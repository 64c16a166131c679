"""The whole server: its class with every feature registered on it."""

from __future__ import annotations

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
