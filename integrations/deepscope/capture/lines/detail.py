"""How much is recorded of a function: the more it would slow the program down, the less."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Detail(IntEnum):
    """What of a function has scopes; each step takes less time than the one before."""

    LINES = 0
    """Each line."""
    LOOPS = 1
    """Each line, but for loops in which no operator was seen: all of such a loop stands at its first line."""
    FUNCTION = 2
    """The function as a whole, at its first line."""
    CALLER = 3
    """Nothing: what it does stands at the line that called it."""


@dataclass(frozen=True)
class Limits:
    """What recording lines may cost a window before detail is lowered."""

    max_slowdown: float = 2.0
    """Times as long as without lines."""
    max_entries: int = 250_000
    """Scopes; torch needs 5 µs, 1.2 kB of memory and 15 bytes of file for each when the window ends."""
