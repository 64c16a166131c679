"""The loops of a code object that may fall silent: what runs in them cannot be mistaken for a line outside."""

from __future__ import annotations

import dis
import functools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

_SUSPENDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_LONGEST = 60_000
"""Bytes of code that are looked through; more take a second."""
_BACK = frozenset(
    opcode for name, opcode in dis.opmap.items() if "JUMP_BACKWARD" in name or name.endswith("JUMP_ABSOLUTE")
)
"""Jumps that may go back. Most functions have none; to learn that from `dis` takes 70 µs."""
_NEVER_GOES_ON = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}
)


class Loop(NamedTuple):
    """The instructions that repeat. Handlers of exceptions may stand far behind the others."""

    begin: int
    """The offset of the first."""
    offsets: frozenset[int]
    line: int
    """The line that runs just before them: the loop's own first, `for` or `while`."""
    lines: frozenset[int]
    """The lines that run in it."""

    def is_within(self, outer: Loop) -> bool:
        """Whether it repeats in `outer`, or is it."""
        return self.begin in outer.offsets


@functools.lru_cache(maxsize=64)
def find_loops(code: CodeType) -> Sequence[Loop]:
    """Loops that can be entered at their first line alone; the outermost first.

    That line's scope is then open when a run begins, and stays so where no line within opens another.
    """
    if code.co_flags & _SUSPENDS or len(code.co_code) > _LONGEST or _BACK.isdisjoint(code.co_code[::2]):
        return ()
    instructions = list(dis.get_instructions(code))
    ends = [*(one.offset for one in instructions[1:]), len(code.co_code)]
    line_of = {
        offset: line for begin, end, line in code.co_lines() if line is not None for offset in range(begin, end, 2)
    }
    jumps = [
        (one.offset, int(one.argval)) for one in instructions if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs
    ]
    before: defaultdict[int, set[int]] = defaultdict(set)
    for origin, target in (*jumps, *_raising(code, instructions)):
        before[target].add(origin)
    for one, end in zip(instructions, ends, strict=True):
        if one.opname not in _NEVER_GOES_ON:
            before[end].add(one.offset)
    end_of = {one.offset: end for one, end in zip(instructions, ends, strict=True)}
    loops = []
    for begin in {target for origin, target in jumps if target <= origin}:
        starts = _repeated(begin, [origin for origin, target in jumps if target == begin <= origin], before)
        entered = begin - 2 if begin else None
        while entered is not None and entered not in end_of:
            entered -= 2
        if entered is None or min(starts) < begin or entered not in before[begin]:
            continue
        if any(target in starts and origin not in starts for origin, target in jumps):
            continue
        # A frame that calls is at the last of the caches behind its instruction.
        offsets = frozenset(offset for start in starts for offset in range(start, end_of[start], 2))
        lines = frozenset(line_of[offset] for offset in offsets if offset in line_of)
        line = line_of.get(entered)
        if line is not None and line in lines:
            loops.append(Loop(begin, offsets, line, lines))
    return tuple(sorted(loops, key=lambda loop: (loop.begin, -len(loop.offsets))))


def _raising(code: CodeType, instructions: Sequence[dis.Instruction]) -> Iterator[tuple[int, int]]:
    """From which instruction an exception leads to which; before 3.11 SETUP_FINALLY is a jump that says it."""
    parse: Any = getattr(dis, "_parse_exception_table", lambda _code: ())
    offsets = [one.offset for one in instructions]
    for entry in parse(code):
        for offset in offsets[bisect_left(offsets, entry.start) : bisect_left(offsets, entry.end)]:
            yield offset, entry.target


def _repeated(begin: int, ends: Sequence[int], before: Mapping[int, set[int]]) -> set[int]:
    """The instructions from which a loop comes back to its `begin`, by way of one of its `ends`."""
    found, left = {begin}, list(ends)
    while left:
        offset = left.pop()
        if offset not in found:
            found.add(offset)
            left += before.get(offset, ())
    return found
