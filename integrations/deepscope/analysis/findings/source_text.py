"""The text of user files as a trace carries it, for edits that a finding proposes."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from deepscope.analysis.ownership.locations import Location
from deepscope.records import Edit
from deepscope.trace.model import Trace
from deepscope.trace.source_lines import source_lines


def line_text(trace: Trace, location: Location) -> str:
    """The source line; "" where the trace does not carry it."""
    lines = source_lines(_text(trace, location.file))
    return lines[location.line - 1] if (location.exact or location.fused) and 0 < location.line <= len(lines) else ""


def with_keyword(trace: Trace, file: str, function: str, keyword: str, value: str) -> tuple[Edit, ...]:
    """Edits that give `keyword=value` to the calls of `function` in a file.

    A call must stand on one line and lack the keyword. There are none where the text is unknown or of a newer Python.
    """
    text = _text(trace, file)
    tree = _tree(text) if function in text else None
    if tree is None:
        return ()
    lines = source_lines(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_named(node.func, function) and node.lineno == node.end_lineno:
            names = {one.arg for one in node.keywords}
            old = _segment(lines[node.lineno - 1], node)
            if old and keyword not in names and None not in names and (node.args or node.keywords):
                head = old[:-1].rstrip().rstrip(",")
                found.append(Edit(node.lineno, old, f"{head}, {keyword}={value})"))
    return tuple(found)


def lines_calling(trace: Trace, file: str, is_meant: Callable[[str], bool]) -> frozenset[int]:
    """The lines of a file on which calls stand of functions whose dotted names are meant; none where it is unknown."""
    tree = _tree(_text(trace, file))
    found: set[int] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and is_meant(_dotted(node.func)):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def lines_reading(trace: Trace, file: str, is_meant: Callable[[str], bool]) -> frozenset[int]:
    """The lines of a file on which nothing is read from a tensor (`.item()`, `float(…)`) but what calls returned.

    Args:
        trace: of the file.
        file: its path.
        is_meant: says by their dotted names whether functions are meant; the name that such a call is assigned to is
            followed within its function.
    """
    found: set[int] = set()
    tree = _tree(_text(trace, file))
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)] if tree is not None else []
    for function in functions:
        nodes = list(ast.walk(function))
        names = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and is_meant(_dotted(node.value.func))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if names:
            reads = [read for node in nodes if isinstance(node, ast.Call) and (read := _read(node))[1]]
            others = {line for line, name in reads if name not in names}
            found.update(line for line, name in reads if name in names and line not in others)
    return frozenset(found)


_FUNCTIONS = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)


def _read(call: ast.Call) -> tuple[int, str]:
    """The line of a call that reads a value, and the name of the tensor; "?" for one without, "" for other calls."""
    tensor: ast.expr | None = None
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"item", "tolist"} and not call.args:
        tensor = call.func.value
    elif isinstance(call.func, ast.Name) and call.func.id in {"float", "bool", "int"} and len(call.args) == 1:
        tensor = call.args[0]
    if tensor is None or (isinstance(tensor, ast.Call) and _read(tensor)[1]):  # `float(x.item())` is one
        return call.lineno, ""
    return call.lineno, tensor.id if isinstance(tensor, ast.Name) else "?"


def _dotted(function: ast.expr, *, through_calls: bool = False) -> str:
    """`self.logger.info`; what is no name is `?`."""
    parts = []
    while isinstance(function, ast.Attribute) or (through_calls and isinstance(function, ast.Call)):
        if isinstance(function, ast.Call):
            function = function.func
            continue
        parts.append(function.attr)
        function = function.value
    parts.append(function.id if isinstance(function, ast.Name) else "?")
    return ".".join(reversed(parts))


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def repeats_within(trace: Trace, location: Location) -> bool:
    """Whether one run of a line repeats something: it holds a comprehension, or a loop with its body.

    False where the text is not known.
    """
    text = line_text(trace, location)
    tree = _tree(_text(trace, location.file)) if "for" in text or "while" in text else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _COMPREHENSIONS) and node.lineno <= location.line <= (node.end_lineno or node.lineno):
            return True
        if isinstance(node, _LOOPS) and node.lineno == location.line == node.body[0].lineno:
            return True
    return False


def loops_around(trace: Trace, location: Location) -> list[int]:
    """The first lines of the loops of its function that a line is in, the outermost first; none where it is unknown."""
    tree = _tree(_text(trace, location.file))
    found: list[int] = []
    for node in _enclosing(tree, location.line) if tree is not None else ():
        if isinstance(node, _FUNCTIONS):
            found.clear()
        elif isinstance(node, _LOOPS):
            found.append(node.lineno)
    return found


def goes_in_turn(trace: Trace, location: Location) -> bool:
    """Whether each turn of the innermost loop around a line reads what the turn before it stored, but for sums."""
    tree = _tree(_text(trace, location.file))
    around = list(_enclosing(tree, location.line)) if tree is not None else []
    loop = next((one for one in reversed(around) if isinstance(one, (*_LOOPS, *_FUNCTIONS))), None)
    if not isinstance(loop, _LOOPS):
        return False
    counters = set() if isinstance(loop, ast.While) else {one.id for one in _names(loop.target)}
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
            if isinstance(one.ctx, ast.Store) and not counters.isdisjoint(name.id for name in _names(one.slice))
        }
        passed = {*map(id, bases), *(id(one.value) for one in elements if ast.dump(one.slice) in own)}
        loaded = {one.id for one in _names(statement) if isinstance(one.ctx, ast.Load) and id(one) not in passed}
        read |= loaded - known - summed
        known |= {one.id for one in bases if isinstance(one.ctx, ast.Store)}
        stored |= names - summed
    return not read.isdisjoint(stored)


def _names(node: ast.AST) -> list[ast.Name]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Name)]


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
        if isinstance(one, _FUNCTIONS) or not inner:
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


def loops_over(trace: Trace, location: Location, is_meant: Callable[[str], object]) -> bool:
    """Whether a loop around a line, or a comprehension on it, goes over what a meant function returns.

    Also by a name that its function assigned that to.
    """
    tree = _tree(_text(trace, location.file))
    statements = list(_enclosing(tree, location.line)) if tree else []
    around = [one.iter for one in statements if isinstance(one, ast.For)]
    inner = (part for one in _on_line(trace, location) if isinstance(one, _COMPREHENSIONS) for part in one.generators)
    nodes = [node for over in (*around, *(part.iter for part in inner)) for node in ast.walk(over)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    within: ast.AST | None = tree
    for statement in statements:
        within = statement if isinstance(statement, _FUNCTIONS) else within
    for node in ast.walk(within) if names and within else ():
        if isinstance(node, ast.Assign):
            targets = {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
            nodes += ast.walk(node.value) if not names.isdisjoint(targets) else ()
    return any(isinstance(node, ast.Call) and is_meant(_dotted(node.func)) for node in nodes)


def is_of_several_lines(trace: Trace, location: Location) -> bool:
    """Whether a line is one of several of a statement, which comes back to lines that it was on; False if unknown."""
    return location.exact and location.line in _lines_of_long_statements(_text(trace, location.file))


@functools.lru_cache(maxsize=64)
def _lines_of_long_statements(text: str) -> frozenset[int]:
    """The lines of statements of several lines that hold no others."""
    found: set[int] = set()
    for node in ast.walk(tree) if (tree := _tree(text)) is not None else ():
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and not hasattr(node, "cases"):
            last = node.end_lineno or node.lineno
            found.update(range(node.lineno, last + 1) if last > node.lineno else ())
    return frozenset(found)


def loops_in_function(trace: Trace, location: Location) -> bool:
    """Whether the function that a line is in, or begins on, has a loop; False where the text is not known."""
    tree = _tree(_text(trace, location.file))
    functions = [one for one in _enclosing(tree, location.line) if isinstance(one, _FUNCTIONS)] if tree else []
    return any(isinstance(one, _LOOPS) for one in (ast.walk(functions[-1]) if functions else ()))


_MAKERS = frozenset({"tensor", "as_tensor", "asarray", "from_numpy"})
"""Functions that make a tensor of numbers."""
_OF_TORCH = frozenset({"torch", "F"})


def makes_tensor(trace: Trace, location: Location, names: frozenset[str] = frozenset()) -> bool:
    """Whether a line's statement calls nothing but what makes a tensor, or takes one, or functions of these names.

    False where the text is not known.
    """
    statement = _statement(trace, location)
    called = list(_outermost_calls(statement)) if statement is not None else []
    return bool(called) and all(_is_of_tensors(call, names) for call in called)


def is_returned(trace: Trace, location: Location) -> bool:
    """Whether what a line makes is all that its function makes and returns; False where the text is not known.

    It is the one `return` itself, or it assigns the one name of the function's own that all of them read.
    """
    statement, tree = _statement(trace, location), _tree(_text(trace, location.file))
    around = list(_enclosing(tree, location.line)) if tree is not None else []
    functions = [one for one in around if isinstance(one, _FUNCTIONS[1:])]
    if statement is None or not functions:
        return False
    nodes = list(ast.walk(functions[-1]))
    returned = [node for node in nodes if isinstance(node, ast.Return)]
    several = (ast.Tuple, ast.List, ast.Dict)
    if any(one.value is None or isinstance(one.value, several) for one in returned) or any(
        isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in nodes
    ):
        return False
    if isinstance(statement, ast.Return):
        return len(returned) == 1
    made = _stored(functions[-1])
    read = [{node.id for node in ast.walk(one) if isinstance(node, ast.Name)} & made for one in returned]
    return bool(read) and all(names == _stored(statement) and len(names) == 1 for names in read)


def only_lets_go(trace: Trace, location: Location) -> bool:
    """Whether a line only gives names new, empty values (`xs, ys = [], []`, `del x`): what takes its time is to let go
    of what they held. False if unknown."""
    statement = _statement(trace, location) if location.exact else None
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return statement.value is not None and _is_empty(statement.value)
    return isinstance(statement, ast.Delete)


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(_is_empty(one) for one in value.elts)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _statement(trace: Trace, location: Location) -> ast.stmt | None:
    """The innermost statement that a line is of."""
    tree = _tree(_text(trace, location.file)) if location.exact else None
    around = list(_enclosing(tree, location.line)) if tree is not None else []
    return around[-1] if around and not hasattr(around[-1], "body") else None


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _outermost_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        if isinstance(node, ast.Call):
            yield node
        else:
            left += ast.iter_child_nodes(node)


def _is_of_tensors(call: ast.Call, others: frozenset[str]) -> bool:
    names = _dotted(call.func, through_calls=True).split(".")
    return names[0] in _OF_TORCH or any(name in _MAKERS or name in others or name.endswith("Tensor") for name in names)


def _enclosing(node: ast.AST, line: int) -> Iterator[ast.stmt]:
    """The statements that hold a line, the outermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and child.lineno <= line <= (child.end_lineno or child.lineno):
            yield child
            yield from _enclosing(child, line)


def calls_on(trace: Trace, location: Location) -> list[str]:
    """The dotted names of the functions that a line calls: `torch.cdist.min` for `torch.cdist(a, b).min()`.

    Empty where there are none, or the text is not known.
    """
    return [_dotted(one.func, through_calls=True) for one in _on_line(trace, location) if isinstance(one, ast.Call)]


def gives_keyword(trace: Trace, location: Location, keyword: str, value: object) -> bool:
    """Whether a call on a line is given `keyword=value`, as a constant."""
    calls = (one for one in _on_line(trace, location) if isinstance(one, ast.Call))
    given = (one.value for call in calls for one in call.keywords if one.arg == keyword)
    return any(isinstance(one, ast.Constant) and one.value is value for one in given)


def uses_on(trace: Trace, location: Location) -> list[str]:
    """The dotted names of what a line calls or takes elements of (`self.frame.iloc`); empty as for `calls_on`."""
    return list(_uses(_on_line(trace, location)))


def uses_behind(trace: Trace, location: Location) -> list[str]:
    """The same of what the names that a line reads were assigned from in its function."""
    read = {one.id for one in _on_line(trace, location) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    tree = _tree(_text(trace, location.file)) if read else None
    within = [one for one in _enclosing(tree, location.line) if isinstance(one, _FUNCTIONS)] if tree is not None else []
    return [
        name
        for node in (ast.walk(within[-1]) if within else ())
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id in read for one in node.targets)
        for name in _uses(ast.walk(node.value))
    ]


def _uses(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call):
            yield _dotted(node.func, through_calls=True)
        elif isinstance(node, ast.Subscript):
            yield _dotted(node.value)


def _on_line(trace: Trace, location: Location) -> list[ast.expr]:
    """The expressions that a line is part of."""
    return _expressions(_text(trace, location.file)).get(location.line, []) if location.exact else []


@functools.lru_cache(maxsize=64)
def _expressions(text: str) -> dict[int, list[ast.expr]]:
    """By line. Kept until `forget_trees`, as `_tree` keeps trees."""
    found: dict[int, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree) if (tree := _tree(text)) is not None else ():
        if isinstance(node, ast.expr):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line].append(node)
    return dict(found)


@functools.lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module | None:
    """None where the text is of a newer Python, or no Python at all. Kept until `forget_trees`."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def forget_trees() -> None:
    """Let go of all texts and their trees, which are a hundred times as large."""
    _tree.cache_clear()
    _expressions.cache_clear()
    _lines_of_long_statements.cache_clear()


def _is_named(function: ast.expr, name: str) -> bool:
    return (isinstance(function, ast.Name) and function.id == name) or (
        isinstance(function, ast.Attribute) and function.attr == name
    )


def _segment(line: str, node: ast.Call) -> str:
    """The call's text; the tree counts UTF-8 bytes."""
    segment = line.encode()[node.col_offset : node.end_col_offset].decode("utf-8", "replace")
    return segment if segment.endswith(")") else ""


def _text(trace: Trace, path: str) -> str:
    return next((file.text for file in trace.header.texts() if file.path == path and file.text), "")
