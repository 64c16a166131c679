"""Thin handlers between the protocol and the engine, one file a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepscope_lsp.features import (
    code_actions,
    code_lenses,
    commands,
    diagnostics,
    highlights,
    hovers,
    inlay_hints,
    lifecycle,
    notebooks,
    symbols,
    text_sync,
    watching,
)

if TYPE_CHECKING:
    from deepscope_lsp.server import DeepScopeServer

__all__ = ["register_all"]

FEATURES = (
    lifecycle,
    text_sync,
    notebooks,
    inlay_hints,
    code_lenses,
    hovers,
    diagnostics,
    code_actions,
    symbols,
    highlights,
    commands,
    watching,
)


def register_all(server: DeepScopeServer) -> None:
    """Registers every feature's handlers."""
    for feature in FEATURES:
        feature.register(server)
