"""What the instructions of a code object say of its lines: which can run no operator, which may run before which."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from types import CodeType

UNKNOWN = -1
"""In place of a line: any may have run before, an exception was caught."""

_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_BACK = frozenset(opcode for name, opcode in dis.opmap.items() if "JUMP_BACKWARD" in name)
_ENDS = frozenset(
    dis.opmap.get(name, -1)
    for name in ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
                 "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT")
)  # fmt: skip
"""What never goes on with the next instruction."""
_HANDLERS = frozenset(dis.opmap.get(name, -1) for name in ("PUSH_EXC_INFO", "CLEANUP_THROW"))
"""Each handler of an exception begins with one of these, but those that raise it again at once."""
_CACHE, _EXTENDED = dis.opmap.get("CACHE", 0), dis.opmap["EXTENDED_ARG"]

_MOVES = (
    *(
        "CACHE",
        "EXTENDED_ARG",
        "NOP",
        "RESUME",
        "PUSH_NULL",
        "POP_TOP",
        "COPY",
        "SWAP",
        "DUP_TOP",
        "ROT_TWO",
        "KW_NAMES",
    ),
    *("LOAD_CONST", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_FAST_LOAD_FAST"),
    *("LOAD_DEREF", "LOAD_CLOSURE", "STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_DEREF"),
    *("MAKE_CELL", "COPY_FREE_VARS", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "LOAD_ASSERTION_ERROR"),
    *("BUILD_TUPLE", "BUILD_LIST", "BUILD_CONST_KEY_MAP", "IS_OP", "RETURN_VALUE", "RETURN_CONST"),
    *("JUMP_ABSOLUTE", "JUMP_FORWARD", "JUMP_BACKWARD", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"),
    *("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE"),
    # What is asked before a jump is asked by an instruction of its own, TO_BOOL, from 3.13 on.
    *(("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE") if sys.version_info >= (3, 13) else ()),
)
_CALLS_NOTHING = frozenset(dis.opmap[name] for name in _MOVES if name in dis.opmap)
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
            target = following + (-2 if opcode in _BACK else 2) * argument
            yield line, line_at.get(target, UNKNOWN)
        if opcode not in _ENDS and following < end:
            yield line, line_at.get(following, UNKNOWN)
        argument = argument if opcode == _EXTENDED else 0
        offset = following
