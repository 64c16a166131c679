"""What a code object says about itself: where its lines begin, and where it starts and resumes."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Mapping
from types import CodeType, FrameType

_LONG = 128
"""Lines. CPython keeps a line's distance from the `def` in a byte, and for any further one searches at each event."""

_SUSPENDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_RESUME = dis.opmap.get("RESUME", -1)
_PROLOGUE = frozenset(
    dis.opmap.get(name, -1)
    for name in ("GEN_START", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP", "CACHE")
)


def resume_offset(code: CodeType) -> int:
    """Offset of the instruction at which a first run starts: RESUME, or before 3.11 the very first one."""
    instructions = code.co_code
    for offset in range(0, len(instructions), 2):
        if instructions[offset] == _RESUME:
            return offset
        if instructions[offset] not in _PROLOGUE:
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


def only_line(code: CodeType) -> int:
    """The line of code that has one alone: a generator expression, a comprehension, a lambda; 0 for any other."""
    lines = {line for _, _, line in code.co_lines() if line is not None}
    return lines.pop() if len(lines) == 1 and code.co_name.startswith("<") and code.co_name != "<module>" else 0


def line_starts(code: CodeType) -> Mapping[int, int] | None:
    """For a long function, the offsets at which a line may begin to run, and the line; None for any other.

    CPython's own LINE events take 1.3 µs each in a function of 200 lines, 20 to 100 in one of 2,000 (3.12 to 3.13).
    """
    if len(code.co_linetable) <= _LONG:  # Each range of instructions takes a byte of it at least.
        return None
    lines = {line for _, _, line in code.co_lines()}
    return offsets_of_lines(code) if len(lines) > _LONG else None


@functools.lru_cache(maxsize=64)  # A hundred milliseconds for a function of ten thousand lines.
def offsets_of_lines(code: CodeType) -> Mapping[int, int]:
    """The offsets at which a line may begin to run, and the line."""
    instructions = code.co_code
    # The table names no handlers as targets of jumps; each begins with one of these.
    handlers = {dis.opmap.get(name, -1) for name in ("PUSH_EXC_INFO", "CLEANUP_THROW")}
    targets = set(dis.findlabels(instructions))  # type: ignore[arg-type]  # of bytecode, says the manual
    targets.update(offset for offset in range(0, len(instructions), 2) if instructions[offset] in handlers)
    first = resume_offset(code)
    starts: dict[int, int] = {}
    for begin, end, line in code.co_lines():
        if line is not None and (begin > first or end > first + 2):
            starts[begin] = line
            starts.update((offset, line) for offset in range(begin + 2, end, 2) if offset in targets)
    return starts


def users_line_starts(code: CodeType) -> Mapping[int, int] | None:
    """In code that dynamo wrote, the offsets at which lines of the user's begin, and the lines; None where it has none.

    An instruction that was the user's has columns. What dynamo adds has none, and has the line of what stands before
    it. This is so of the TO_BOOL before a jump, too (3.13), in which a tensor is waited for.

    None, too, where Python's own line events are right: on 3.11, unless the code begins on a line that is the user's as
    well, as in a loop that breaks its graph at `while`.
    """
    starts: dict[int, int] = {}
    before: dis.Instruction | None = None
    line = 0
    for instruction in dis.get_instructions(code):
        place = getattr(instruction, "positions", None)  # came with 3.11
        if place is not None and place.lineno and place.end_col_offset:
            if place.lineno != line:
                tested = before is not None and before.opname == "TO_BOOL" and "POP_JUMP" in instruction.opname
                starts[before.offset if tested and before is not None else instruction.offset] = place.lineno
            line = place.lineno
        before = instruction
    is_told = sys.version_info < (3, 12) and code.co_firstlineno not in starts.values()
    return None if is_told else starts or None


def is_resumed(frame: FrameType, start: int) -> bool:
    """Whether a frame that reports a call goes on after a `yield` or `await`; `start` as `resume_offset` gives it."""
    return bool(frame.f_code.co_flags & _SUSPENDS) and frame.f_lasti > start
