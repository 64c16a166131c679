"""Where functions and classes are defined in a text, by their qualified names; the text need not be valid Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DEFINITION = re.compile(r"^([ \t]*)(?:(class)|(?:async[ \t]+)?def)[ \t]+(\w+)")


@dataclass(frozen=True, slots=True)
class Definition:
    """A `def` or `class` line (from 1) and the name as Python qualifies it (`Net.forward.<locals>.inner`)."""

    line: int
    name: str
    is_class: bool
    column: int
    """Of the bare name, in code points from 0."""


def outline(lines: Sequence[str]) -> Iterator[Definition]:
    """All definitions in order. Indentation decides what is inside of what, as in Python."""
    open_blocks: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        match = _DEFINITION.match(line)
        if match is None:
            continue
        indent = len(match[1].expandtabs())
        while open_blocks and open_blocks[-1][0] >= indent:
            open_blocks.pop()
        prefix = open_blocks[-1][1] if open_blocks else ""
        name = prefix + match[3]
        is_class = match[2] is not None
        yield Definition(number, name, is_class, match.start(3))
        open_blocks.append((indent, f"{name}." if is_class else f"{name}.<locals>."))
