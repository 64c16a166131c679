"""The loops of a code object that may fall silent: what runs in them cannot be mistaken for a line outside."""

from __future__ import annotations

import dis
import functools
from collections.abc import Sequence
from types import CodeType
from typing import NamedTuple

__all__ = ["Loop", "find_loops"]

_SUSPENDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_LONGEST = 60_000
"""Bytes of code that are looked through; more take a second."""
_BACK = frozenset(
    opcode for name, opcode in dis.opmap.items() if "JUMP_BACKWARD" in name or name.endswith("JUMP_ABSOLUTE")
)
"""Jumps that may go back. Most functions have none; to learn that from `dis` takes 70 µs."""
_NEVER_GOES_ON = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD"}
)


class Loop(NamedTuple):
    """The instructions that repeat, `begin` to `end` in offsets, both included."""

    begin: int
    end: int
    line: int
    """The line that runs just before them: the loop's own first, `for` or `while`."""
    lines: frozenset[int]
    """The lines that run in it."""


@functools.lru_cache(maxsize=64)
def find_loops(code: CodeType) -> Sequence[Loop]:
    """Loops that can be entered at their first line alone; the outermost first.

    That line's scope is then open when a run begins, and stays so where no line within opens another.
    """
    if code.co_flags & _SUSPENDS or len(code.co_code) > _LONGEST or _BACK.isdisjoint(code.co_code[::2]):
        return ()
    instructions = list(dis.get_instructions(code))
    line_of = {
        offset: line for begin, end, line in code.co_lines() if line is not None for offset in range(begin, end, 2)
    }
    jumps = [
        (one.offset, int(one.argval)) for one in instructions if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs
    ]
    ends: dict[int, int] = {}
    for origin, target in jumps:
        if target <= origin:
            ends[target] = max(ends.get(target, 0), origin)
    loops = []
    for begin, end in ends.items():
        before = max((one for one in instructions if one.offset < begin), key=lambda one: one.offset, default=None)
        if before is None or before.opname in _NEVER_GOES_ON:
            continue
        if any(begin <= target <= end and not begin <= origin <= end for origin, target in jumps):
            continue
        lines = frozenset(line_of[offset] for offset in range(begin, end + 2, 2) if offset in line_of)
        line = line_of.get(before.offset)
        if line is not None and line in lines:
            loops.append(Loop(begin, end, line, lines))
    return tuple(sorted(loops, key=lambda loop: (loop.begin, -loop.end)))
