"""The language server: each line's time in any editor that speaks LSP."""

__all__: list[str] = []
