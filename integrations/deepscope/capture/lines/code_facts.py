"""What a code object says about its own start: where its first line event comes from, and where it resumes."""

from __future__ import annotations

import dis
from types import CodeType, FrameType

__all__ = ["is_resumed", "opens_at_start", "resume_offset"]

_SUSPENDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_PROLOGUE = frozenset({"GEN_START", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP", "CACHE"})


def resume_offset(code: CodeType) -> int:
    """Offset of the instruction at which a first run starts: RESUME; before 3.11, that of the very first."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RESUME":
            return instruction.offset
        if instruction.opname not in _PROLOGUE:
            break
    return 0


def opens_at_start(code: CodeType) -> bool:
    """Whether the body begins on the line that the function starts on: a lambda, a generator expression, a one-liner.

    `sys.monitoring` may then send no LINE event in the first run (3.12, 3.13).
    """
    start = resume_offset(code)
    first = None
    for begin, end, line in code.co_lines():
        if begin <= start < end:
            first = line
            if end > start + 2:  # RESUME is one unit of two bytes; the rest of the range is body
                return True
        elif begin > start and line is not None:
            return bool(line == first)
    return False


def is_resumed(frame: FrameType, start: int) -> bool:
    """Whether a frame that reports a call goes on after a `yield` or `await`; `start` as `resume_offset` gives it."""
    return bool(frame.f_code.co_flags & _SUSPENDS) and frame.f_lasti > start
