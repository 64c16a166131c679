"""What a code object says of itself: lines, where it resumes, what follows what; and how much of it is recorded."""

from __future__ import annotations

import dis
import functools
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from types import CodeType, FrameType
from typing import Any, NamedTuple


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


_LONG = 128
"""Lines. CPython keeps a line's distance from the `def` in a byte, and for any further one searches at each event."""

_SUSPENDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


def _opcodes(names: str) -> frozenset[int]:
    """Of instructions, those that this Python has."""
    return frozenset(dis.opmap[name] for name in names.split() if name in dis.opmap)


_RESUME = dis.opmap.get("RESUME", -1)
_PROLOGUE = _opcodes("GEN_START COPY_FREE_VARS MAKE_CELL RETURN_GENERATOR POP_TOP CACHE")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ENDS = _opcodes(
    "RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT "
    "JUMP_ABSOLUTE INTERPRETER_EXIT"
)
"""What never goes on with the next instruction."""
_HANDLERS = _opcodes("PUSH_EXC_INFO CLEANUP_THROW")
"""Each handler of an exception begins with one of these, but those that raise it again at once."""


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
    targets = set(dis.findlabels(instructions))  # type: ignore[arg-type]  # of bytecode, says the manual
    targets.update(offset for offset in range(0, len(instructions), 2) if instructions[offset] in _HANDLERS)
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


_LONGEST = 60_000
"""Bytes of code that are looked through; more take a second."""
_MAY_GO_BACK = frozenset(
    opcode for name, opcode in dis.opmap.items() if "JUMP_BACKWARD" in name or name.endswith("JUMP_ABSOLUTE")
)
"""Jumps that may go back. Most functions have none; to learn that from `dis` takes 70 µs."""
_TESTS_AT_HEAD = sys.version_info >= (3, 14)
"""Whether each turn of `while` begins with its test; before 3.14 the first alone does."""


class CodeLoop(NamedTuple):
    """The instructions that repeat. Handlers of exceptions may stand far behind the others."""

    begin: int
    """The offset of the first."""
    offsets: frozenset[int]
    """Those that need tell no line; without `begin` where that is the first to be on `line`."""
    line: int
    """The line that runs just before them: the loop's own first, `for` or `while`."""
    lines: frozenset[int]
    """The lines that run in it."""

    def is_within(self, outer: CodeLoop) -> bool:
        """Whether it repeats in `outer`, or is it."""
        return self.begin in outer.offsets


@functools.lru_cache(maxsize=64)
def find_loops(code: CodeType) -> Sequence[CodeLoop]:
    """Loops that can be entered at their first line alone; the outermost first.

    That line's scope is then open when a run begins, and stays so where no line within opens another.
    """
    if code.co_flags & _SUSPENDS or len(code.co_code) > _LONGEST or _MAY_GO_BACK.isdisjoint(code.co_code[::2]):
        return ()
    instructions = list(dis.get_instructions(code))
    ends = [*(one.offset for one in instructions[1:]), len(code.co_code)]
    line_of = {
        offset: line for begin, end, line in code.co_lines() if line is not None for offset in range(begin, end, 2)
    }
    jumps = [(one.offset, int(one.argval)) for one in instructions if one.opcode in _JUMPS]
    before: defaultdict[int, set[int]] = defaultdict(set)
    for origin, target in (*jumps, *_raising(code, instructions)):
        before[target].add(origin)
    for one, end in zip(instructions, ends, strict=True):
        if one.opcode not in _ENDS:
            before[end].add(one.offset)
    end_of = {one.offset: end for one, end in zip(instructions, ends, strict=True)}
    heads = {begin for begin, _, line in code.co_lines() if line is not None} if _TESTS_AT_HEAD else set()
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
            loops.append(CodeLoop(begin, offsets, line, lines))
        elif begin in heads and (test := line_of[begin]) not in (line, None):
            is_left_there = any(
                origin in starts and target not in starts and line_of.get(origin) == test for origin, target in jumps
            )
            if is_left_there:  # `while`, each turn of which begins with its test from Python 3.14 on
                loops.append(CodeLoop(begin, offsets - {*range(begin, end_of[begin], 2)}, test, lines))
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


UNKNOWN = -1
"""In place of a line: any may have run before, an exception was caught."""

_BACKWARD = frozenset(opcode for name, opcode in dis.opmap.items() if "JUMP_BACKWARD" in name)
_CACHE, _EXTENDED = dis.opmap.get("CACHE", 0), dis.opmap["EXTENDED_ARG"]

_CALLS_NOTHING = _opcodes(
    "CACHE EXTENDED_ARG NOP RESUME PUSH_NULL POP_TOP COPY SWAP DUP_TOP ROT_TWO KW_NAMES "
    "LOAD_CONST LOAD_GLOBAL LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST "
    "LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_SMALL_INT LOAD_COMMON_CONSTANT NOT_TAKEN "
    "LOAD_DEREF LOAD_CLOSURE STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_DEREF "
    "MAKE_CELL COPY_FREE_VARS MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE LOAD_ASSERTION_ERROR "
    "BUILD_TUPLE BUILD_LIST BUILD_CONST_KEY_MAP IS_OP RETURN_VALUE RETURN_CONST "
    "JUMP_ABSOLUTE JUMP_FORWARD JUMP_BACKWARD POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE "
    "POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE"
    # What is asked before a jump is asked by an instruction of its own, TO_BOOL, from 3.13 on.
    + (" POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE" if sys.version_info >= (3, 13) else "")
)
"""What moves values about and asks none of them anything."""


def lines_without_calls(code: CodeType) -> frozenset[int]:
    """The lines whose instructions ask no value anything: no operator can run in them."""
    instructions = code.co_code
    silent: set[int] = set()
    other: set[int | None] = set()
    for begin, end, line in code.co_lines():
        if line is not None:
            (silent if _CALLS_NOTHING.issuperset(instructions[begin:end:2]) else other).add(line)
    return frozenset(silent - other)


def lines_before(code: CodeType) -> Mapping[int, frozenset[int]]:
    """For each line the others that may run right before it in its frame; `UNKNOWN` among them where that may be any.

    For Python 3.12 and later, whose jumps are all relative.
    """
    line_at = {
        offset: UNKNOWN if line is None else line
        for begin, end, line in code.co_lines()
        for offset in range(begin, end, 2)
    }
    before: dict[int, set[int]] = {line: set() for line in (UNKNOWN, *line_at.values())}
    for origin, target in _edges(code.co_code, line_at):
        if origin != target:
            before[target].add(origin)
    return {line: frozenset(found) for line, found in before.items()}


def _edges(instructions: bytes, line_at: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """From which line an instruction leads to which."""
    end, offset, argument = len(instructions), 0, 0
    while offset < end:
        opcode = instructions[offset]
        line = line_at.get(offset, UNKNOWN)
        argument = argument << 8 | instructions[offset + 1]
        following = offset + 2
        while following < end and instructions[following] == _CACHE:
            following += 2
        if opcode in _HANDLERS:
            yield UNKNOWN, line
        if opcode in _JUMPS:
            target = following + (-2 if opcode in _BACKWARD else 2) * argument
            yield line, line_at.get(target, UNKNOWN)
        if opcode not in _ENDS and following < end:
            yield line, line_at.get(following, UNKNOWN)
        argument = argument if opcode == _EXTENDED else 0
        offset = following
