"""Numbers from a trace: pure functions over its columns; every definition stands in docs/numbers.md."""

__all__: list[str] = []
