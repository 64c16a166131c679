"""The texts of user files as a trace carries them, parsed once, and what stands on their lines."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from deepscope.analysis.ownership.locations import Location
from deepscope.records import Edit
from deepscope.records.source_files import source_lines
from deepscope.trace.model import Trace

FUNCTIONS = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MAKERS = frozenset({"tensor", "as_tensor", "asarray", "from_numpy"})
"""Functions that make a tensor of numbers."""
_OF_TORCH = frozenset({"torch", "F"})


class SourceFile:
    """A file's text; "" where the trace does not carry it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """Without their ends."""
        return source_lines(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """An empty one where the text is of a newer Python, or no Python at all."""
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def expressions(self) -> dict[int, list[ast.expr]]:
        """By line, those that it is part of."""
        found: dict[int, list[ast.expr]] = defaultdict(list)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    found[line].append(node)
        return dict(found)

    @cached_property
    def lines_of_long_statements(self) -> frozenset[int]:
        """The lines of statements of several lines that hold no others."""
        found: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and not hasattr(node, "cases"):
                last = node.end_lineno or node.lineno
                found.update(range(node.lineno, last + 1) if last > node.lineno else ())
        return frozenset(found)

    def enclosing(self, line: int) -> list[ast.stmt]:
        """The statements that hold a line, the outermost first."""
        return list(_enclosing(self.tree, line))

    def lines_calling(self, is_meant: Callable[[str], object]) -> frozenset[int]:
        """The lines on which calls stand of functions whose dotted names are meant."""
        found: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and is_meant(dotted_name(node.func)):
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return frozenset(found)

    def lines_reading(self, is_meant: Callable[[str], bool]) -> frozenset[int]:
        """The lines on which nothing is read from a tensor (`.item()`, `float(…)`) but what calls returned.

        `is_meant` says by their dotted names whether functions are meant; the name that such a call is assigned to is
        followed within its function.
        """
        found: set[int] = set()
        for function in (node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)):
            nodes = list(ast.walk(function))
            assigned = [
                node.targets
                for node in nodes
                if isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and is_meant(dotted_name(node.value.func))
            ]
            names = {one.id for targets in assigned for one in targets if isinstance(one, ast.Name)}
            if names:
                reads = [read for node in nodes if isinstance(node, ast.Call) and (read := _read(node))[1]]
                others = {line for line, name in reads if name not in names}
                found.update(line for line, name in reads if name in names and line not in others)
        return frozenset(found)

    def with_keyword(self, function: str, keyword: str, value: str) -> tuple[Edit, ...]:
        """Edits that give `keyword=value` to the calls of `function`.

        A call must stand on one line and lack the keyword.
        """
        found = []
        for node in ast.walk(self.tree) if function in self.text else ():
            if not isinstance(node, ast.Call) or not _is_named(node.func, function) or node.lineno != node.end_lineno:
                continue
            names = {one.arg for one in node.keywords}
            old = _segment(self.lines[node.lineno - 1], node)
            if old and keyword not in names and None not in names and (node.args or node.keywords):
                head = old[:-1].rstrip().rstrip(",")
                found.append(Edit(node.lineno, old, f"{head}, {keyword}={value})"))
        return tuple(found)


class SourceTexts:
    """The files of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._texts: dict[str, str] = {}
        for file in trace.header.texts():
            if file.text:
                self._texts.setdefault(file.path, file.text)
        self._files: dict[str, SourceFile] = {}

    def file(self, path: str) -> SourceFile:
        """The file of a path."""
        if path not in self._files:
            self._files[path] = SourceFile(self._texts.get(path, ""))
        return self._files[path]

    def at(self, location: Location) -> SourceLine:
        """A line."""
        return SourceLine(self.file(location.file), location)

    def calling(self, word: str, is_meant: Callable[[str], object]) -> set[tuple[str, int]]:
        """The files and lines that call functions whose dotted names are meant, of files whose texts have a word."""
        return {(path, line) for path in self.with_word(word) for line in self.file(path).lines_calling(is_meant)}

    def only_call(self, word: str, is_meant: Callable[[str], object]) -> tuple[str, int]:
        """Where the only one of such calls stands, on one line or several in a row; ("", 0) where there are others."""
        found = self.calling(word, is_meant)
        first = min(found, default=("", 0))
        is_one = found and {path for path, _ in found} == {first[0]} and max(found)[1] - first[1] + 1 == len(found)
        return first if is_one else ("", 0)

    def with_word(self, word: str) -> list[str]:
        """The paths of the files whose texts have a word."""
        return [path for path, text in self._texts.items() if word in text]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file; nothing stands there where the text is not known."""

    file: SourceFile
    location: Location

    @property
    def text(self) -> str:
        """The line; "" for one that stands for others."""
        lines, line = self.file.lines, self.location.line
        is_one = self.location.exact or self.location.fused
        return lines[line - 1] if is_one and 0 < line <= len(lines) else ""

    @property
    def expressions(self) -> list[ast.expr]:
        """Those that the line is part of."""
        return self.file.expressions.get(self.location.line, []) if self.location.exact else []

    @property
    def enclosing(self) -> list[ast.stmt]:
        """The statements that hold the line, the outermost first."""
        return self.file.enclosing(self.location.line)

    @property
    def statement(self) -> ast.stmt | None:
        """The innermost statement that the line is of; None for one that holds others."""
        around = self.enclosing if self.location.exact else []
        return around[-1] if around and not hasattr(around[-1], "body") else None

    @property
    def function(self) -> ast.stmt | None:
        """The function that the line is in, or begins on."""
        return next((one for one in reversed(self.enclosing) if isinstance(one, FUNCTIONS)), None)

    @property
    def calls(self) -> list[str]:
        """The dotted names of the functions that it calls: `torch.cdist.min` for `torch.cdist(a, b).min()`."""
        return [dotted_name(one.func, through_calls=True) for one in self.expressions if isinstance(one, ast.Call)]

    @property
    def uses(self) -> list[str]:
        """The dotted names of what it calls or takes elements of (`self.frame.iloc`)."""
        return list(_uses(self.expressions))

    @property
    def uses_behind(self) -> list[str]:
        """The same of what the names that it reads were assigned from in its function."""
        read = {one.id for one in self.expressions if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        function = self.function if read else None
        return [
            name
            for node in (ast.walk(function) if function is not None else ())
            if isinstance(node, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id in read for one in node.targets)
            for name in _uses(ast.walk(node.value))
        ]

    @property
    def is_of_several(self) -> bool:
        """Whether it is one of several lines of a statement, which comes back to lines that it was on."""
        return self.location.exact and self.location.line in self.file.lines_of_long_statements

    @property
    def is_returned(self) -> bool:
        """Whether what it makes is all that its function makes and returns.

        It is the one `return` itself, or it assigns the one name of the function's own that all of them read.
        """
        statement, function = self.statement, self.function
        if statement is None or function is None:
            return False
        nodes = list(ast.walk(function))
        returned = [node for node in nodes if isinstance(node, ast.Return)]
        several = (ast.Tuple, ast.List, ast.Dict)
        if any(one.value is None or isinstance(one.value, several) for one in returned) or any(
            isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in nodes
        ):
            return False
        if isinstance(statement, ast.Return):
            return len(returned) == 1
        made = _stored(function)
        read = [{name.id for name in names_in(one)} & made for one in returned]
        return bool(read) and all(names == _stored(statement) and len(names) == 1 for names in read)

    @property
    def only_lets_go(self) -> bool:
        """Whether it only gives names new, empty values (`xs, ys = [], []`, `del x`): what takes its time is to let go
        of what they held."""
        statement = self.statement
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return statement.value is not None and _is_empty(statement.value)
        return isinstance(statement, ast.Delete)

    def makes_tensor(self, names: frozenset[str] = frozenset()) -> bool:
        """Whether its statement calls nothing but what makes a tensor, or takes one, or functions of these names."""
        called = list(_outermost_calls(self.statement)) if self.statement is not None else []
        return bool(called) and all(_is_of_tensors(call, names) for call in called)

    def gives_keyword(self, keyword: str, value: object) -> bool:
        """Whether a call is given `keyword=value`, as a constant."""
        calls = (one for one in self.expressions if isinstance(one, ast.Call))
        given = (one.value for call in calls for one in call.keywords if one.arg == keyword)
        return any(isinstance(one, ast.Constant) and one.value is value for one in given)


def dotted_name(function: ast.expr, *, through_calls: bool = False) -> str:
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


def names_in(node: ast.AST) -> list[ast.Name]:
    """All names in a node."""
    return [one for one in ast.walk(node) if isinstance(one, ast.Name)]


def _enclosing(node: ast.AST, line: int) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and child.lineno <= line <= (child.end_lineno or child.lineno):
            yield child
            yield from _enclosing(child, line)


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


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(_is_empty(one) for one in value.elts)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in names_in(node) if isinstance(one.ctx, ast.Store)}


def _outermost_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        if isinstance(node, ast.Call):
            yield node
        else:
            left += ast.iter_child_nodes(node)


def _is_of_tensors(call: ast.Call, others: frozenset[str]) -> bool:
    names = dotted_name(call.func, through_calls=True).split(".")
    return names[0] in _OF_TORCH or any(name in _MAKERS or name in others or name.endswith("Tensor") for name in names)


def _uses(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call):
            yield dotted_name(node.func, through_calls=True)
        elif isinstance(node, ast.Subscript):
            yield dotted_name(node.value)


def _is_named(function: ast.expr, name: str) -> bool:
    return (isinstance(function, ast.Name) and function.id == name) or (
        isinstance(function, ast.Attribute) and function.attr == name
    )


def _segment(line: str, node: ast.Call) -> str:
    """The call's text; the tree counts UTF-8 bytes."""
    segment = line.encode()[node.col_offset : node.end_col_offset].decode("utf-8", "replace")
    return segment if segment.endswith(")") else ""
