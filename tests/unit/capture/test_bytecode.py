"""What instructions say of lines: which hold nothing that could run an operator, and which may run before which."""

from __future__ import annotations

import dis
import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from deepscope.capture.lines.bytecode import UNKNOWN, lines_before, lines_without_calls

HAS_RELATIVE_JUMPS = sys.version_info >= (3, 12)
GOES_ON_ELSEWHERE = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"}
HANDLERS = {"PUSH_EXC_INFO", "CLEANUP_THROW"}


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def function(text: str) -> CodeType:
    """The code of the one function of `text`, whose first line is line 1."""
    module = compile(textwrap.dedent(text).lstrip(), "f.py", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def flow_by_dis(code: CodeType) -> set[tuple[int, int]]:
    """Pairs of lines of which one may run right before the other, as Python's own disassembler has the jumps."""
    instructions = list(dis.get_instructions(code))
    table = list(code.co_lines())

    def line_at(offset: int) -> int:
        return next((UNKNOWN if line is None else line for begin, end, line in table if begin <= offset < end), UNKNOWN)

    lines = {one.offset: line_at(one.offset) for one in instructions}
    pairs = set()
    for number, one in enumerate(instructions):
        here = lines[one.offset]
        if one.opname in HANDLERS:
            pairs.add((UNKNOWN, here))
        if one.opcode in dis.hasjrel:
            pairs.add((here, line_at(one.argval)))
        is_last = number + 1 == len(instructions)
        unconditional = one.opname in GOES_ON_ELSEWHERE or one.opname in (
            "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT",
        )  # fmt: skip
        if not unconditional and not is_last:
            pairs.add((here, lines[instructions[number + 1].offset]))
    return {(before, after) for before, after in pairs if before != after}


@pytest.mark.parametrize("module", ["argparse", "ast", "typing", "torch.optim.adam"])
def test_the_flow_of_lines_is_that_of_pythons_own_disassembler(module: str) -> None:
    file = importlib.import_module(module).__file__
    assert file is not None
    compared = 0
    for code in codes_of(compile(Path(file).read_text(), file, "exec")):
        if HAS_RELATIVE_JUMPS:
            found = {(before, after) for after, all_before in lines_before(code).items() for before in all_before}
            assert found == flow_by_dis(code), code
        assert lines_without_calls(code) <= {line for _, _, line in code.co_lines()}
        compared += 1
    assert compared > 10


def test_a_line_that_asks_no_value_anything_holds_no_operator() -> None:
    code = function("""
        def f(x, y, flag):
            a = x
            b = x + y
            c = [x, y, None]
            if flag is not None:
                d = x.T
            e = (lambda: x)
            for part in x:
                a = part
            with y:
                a = b
            a[0] = 1
            del c
            return b
    """)
    silent = lines_without_calls(code)
    # Python 3.10 has no jump for None: it asks the comparison for its truth.
    assert {2, 4, 7, 9, 14} | ({5} if sys.version_info >= (3, 11) else set()) <= silent
    assert silent.isdisjoint({3, 6, 8, 10, 12})


@pytest.mark.skipif(not HAS_RELATIVE_JUMPS, reason="sys.monitoring is not the back end of this Python")
def test_what_comes_before_a_line_is_known_and_after_an_exception_it_may_be_any() -> None:
    before = lines_before(function("""
        def f(xs):
            total = 0
            for x in xs:
                if x:
                    total += x
                try:
                    g(x)
                except ValueError:
                    total = 1
            return total
    """))  # fmt: skip
    assert before[4] == {3}
    assert before[5] == {4}
    assert before[6] == {4, 5}
    assert UNKNOWN in before[8]
    assert before[9] == {8}
