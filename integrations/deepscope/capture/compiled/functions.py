"""Which function of a file a line belongs to: compiled code's stacks tell a function's bare name alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from deepscope.capture.saving.sources import source_text


class Function(NamedTuple):
    """A function, from its first line (its first decorator's) to its last."""

    first_line: int
    last_line: int
    name: str
    qualified: str
    """As a code object has it: `Net.forward`, `outer.<locals>.inner`."""


def function_at(path: str, line: int, name: str) -> tuple[str, int]:
    """Qualified name and first line of the function `name` around a line; the name and 0 where the file has none."""
    around = [one for one in _functions(path) if one.name == name and one.first_line <= line <= one.last_line]
    inner = max(around, key=lambda one: one.first_line, default=None)
    return (inner.qualified, inner.first_line) if inner is not None else (name, 0)


@lru_cache(maxsize=256)
def _functions(path: str) -> tuple[Function, ...]:
    text = source_text(path)
    if text is not None:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return tuple(_within(ast.parse(text), ""))
    return ()


def _within(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            name = f"{prefix}{child.name}"
            yield Function(first, child.end_lineno or child.lineno, child.name, name)
            yield from _within(child, f"{name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _within(child, f"{prefix}{child.name}.")
        else:
            yield from _within(child, prefix)
