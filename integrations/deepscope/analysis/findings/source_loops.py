"""The loops that a line is in, or holds, as its text says; none where that is not known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from deepscope.analysis.findings.source_text import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    SourceLine,
    dotted_name,
    names_in,
)


def repeats_within(source: SourceLine) -> bool:
    """Whether one run of a line repeats something: it holds a comprehension, or a loop with its body."""
    text, line = source.text, source.location.line
    for node in ast.walk(source.file.tree) if "for" in text or "while" in text else ():
        if isinstance(node, COMPREHENSIONS) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return True
        if isinstance(node, LOOPS) and node.lineno == line == node.body[0].lineno:
            return True
    return False


def loops_around(source: SourceLine) -> list[int]:
    """The first lines of the loops of its function that a line is in, the outermost first."""
    found: list[int] = []
    for node in source.enclosing:
        if isinstance(node, FUNCTIONS):
            found.clear()
        elif isinstance(node, LOOPS):
            found.append(node.lineno)
    return found


def loops_in_function(source: SourceLine) -> bool:
    """Whether the function that a line is in, or begins on, has a loop."""
    function = source.function
    return function is not None and any(isinstance(one, LOOPS) for one in ast.walk(function))


def loops_over(source: SourceLine, is_meant: Callable[[str], object]) -> bool:
    """Whether a loop around a line, or a comprehension on it, goes over what a meant function returns.

    Also by a name that its function assigned that to.
    """
    around = [one.iter for one in source.enclosing if isinstance(one, ast.For)]
    inner = (part.iter for one in source.expressions if isinstance(one, COMPREHENSIONS) for part in one.generators)
    nodes = [node for over in (*around, *inner) for node in ast.walk(over)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    for node in ast.walk(source.function or source.file.tree) if names else ():
        if isinstance(node, ast.Assign) and any(one.id in names for target in node.targets for one in names_in(target)):
            nodes += ast.walk(node.value)
    return any(isinstance(node, ast.Call) and is_meant(dotted_name(node.func)) for node in nodes)


def goes_in_turn(source: SourceLine) -> bool:
    """Whether each turn of the innermost loop around a line reads what the turn before it stored, but for sums."""
    loop = next((one for one in reversed(source.enclosing) if isinstance(one, (*LOOPS, *FUNCTIONS))), None)
    if not isinstance(loop, LOOPS):
        return False
    counters = set() if isinstance(loop, ast.While) else {one.id for one in names_in(loop.target)}
    known, stored, read, own = set(counters), set[str](), set[str](), set[str]()
    for statement in _simple_statements(loop.body):
        bases = [one for target in _targets(statement) for one in _bases(target)]
        names = {one.id for one in bases}
        summed = names if isinstance(statement, ast.AugAssign) or _is_sum_of(statement, names) else set[str]()
        elements = [one for one in ast.walk(statement) if isinstance(one, ast.Subscript)]
        # An element that the turn's own number tells is another one in each turn.
        own |= {
            ast.dump(one.slice)
            for one in elements
            if isinstance(one.ctx, ast.Store) and not counters.isdisjoint(name.id for name in names_in(one.slice))
        }
        passed = {*map(id, bases), *(id(one.value) for one in elements if ast.dump(one.slice) in own)}
        loaded = {one.id for one in names_in(statement) if isinstance(one.ctx, ast.Load) and id(one) not in passed}
        read |= loaded - known - summed
        known |= {one.id for one in bases if isinstance(one.ctx, ast.Store)}
        stored |= names - summed
    return not read.isdisjoint(stored)


def _bases(target: ast.expr) -> list[ast.Name]:
    """The names that an assignment gives a value, or to an element of which: `x` and `y` for `x, y[0] = …`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for one in target.elts for name in _bases(one)]
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    return [target] if isinstance(target, ast.Name) else []


def _simple_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Those without a body, in the order of the text, of loops and branches, too."""
    for one in body:
        inner = [part for name in ("body", "orelse", "finalbody") for part in getattr(one, name, ())]
        if isinstance(one, FUNCTIONS) or not inner:
            yield one
        else:
            yield from _simple_statements(inner)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, (ast.AugAssign, ast.AnnAssign)) else []


def _is_sum_of(statement: ast.stmt, names: set[str]) -> bool:
    """`total = total + x`: the name is read as one part of the sum alone."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    read = [one.id for one in ast.walk(statement.value) if isinstance(one, ast.Name) and one.id in names]
    sides = (statement.value.left, statement.value.right)
    return len(read) == 1 and any(isinstance(side, ast.Name) and side.id in names for side in sides)
