"""From what compiled graphs say of themselves to the header's tables: kernel, lines, and nodes from each line.

Torch keeps a kernel's nodes for forward graphs (`cppCodeToPost`), and in comments of Triton's code for all. Where it
keeps neither, in the backward graphs of C++ code, each distinct expression of a line counts as one node.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from deepscope.capture.compiled.graphs import CompiledRecord, SeenGraph
from deepscope.capture.dynamo import PythonFrame, continued_name
from deepscope.capture.lines import UserCode
from deepscope.capture.source_files import describe_file, source_text
from deepscope.trace.format.header import File
from deepscope.trace.format.process_tables import (
    CapturedGraph,
    CompiledCode,
    CompiledGraph,
    CompiledKernel,
    GraphBreak,
    Recompilation,
    SourcePlace,
)

_MOST_SOURCES = 200_000
"""Sources of kernels that a trace tells; a model of a hundred layers has some 10,000."""
_DEEPEST = 50
"""Frames of a stack that are kept, the innermost."""
_MOST_NODES = 1_000_000

_FRAME = re.compile(r'^\s*File "(.+)", line (\d{1,9}), in (.+)$', re.MULTILINE)
_PLACE = re.compile(r"^\s*# File: (.+):(\d{1,9}) in ")
_NO_PLACE = re.compile(r"^\s*# No stacktrace")
_NODE = re.compile(r"^\s*([A-Za-z_]\w*)(?:: \"[^\"]*\")? = ")
_HANDLE = re.compile(r"^\s*(?:#|//) \[Provenance debug handles\] (\S+)", re.MULTILINE)
_FRAGMENT = re.compile(r"# Graph fragment:\n((?:#.*\n)+)(\w+) = async_compile\.")
_FRAGMENT_NODE = re.compile(r"^#\s+%(\w+) : .*= call_\w+\[", re.MULTILINE)


def frames_of(stack: str) -> tuple[PythonFrame, ...]:
    """The frames of a stack's text, outermost first."""
    return tuple(PythonFrame(file, int(line), function.strip()) for file, line, function in _FRAME.findall(stack))[
        -_DEEPEST:
    ]


def compiled_code(record: CompiledRecord, row_of: Callable[[PythonFrame, int], SourcePlace]) -> CompiledCode:
    """The tables of compiled code; `row_of` makes the row of a frame, given the number of its caller's."""
    _functions.cache_clear()  # a file may have been edited, and imported anew, since the window before
    code = CompiledCode()
    places = _Places(row_of)
    sources = 0
    for graph in record.graphs:
        if graph.stacks in {"", "null"}:
            continue
        kernels = [_kernel(name, stacks, places) for name, stacks in _kernels(graph)]
        sources += sum(len(kernel.sources) for kernel in kernels)
        if sources <= _MOST_SOURCES:
            code.graphs.append(CompiledGraph(graph.key, [*kernels]))
    code.breaks = [GraphBreak(places.of(one.frames[-_DEEPEST:]), one.reason) for one in record.breaks]
    code.recompilations = [
        Recompilation(places.of([one.function]), one.reason, one.duration_ns, one.began_ns < record.since_ns)
        for one in record.recompilations
    ]
    code.captures = [
        CapturedGraph(one.graph, [(node, places.of(frames)) for node, frames in one.nodes if frames])
        for one in record.captures
    ]
    code.places = [*places.rows]
    return code


def code_of_window(record: CompiledRecord, files: list[File | None], code: UserCode, source: str) -> CompiledCode:
    """What compiled graphs tell; the files that they alone name are added to `files`."""
    number = {file.path: index for index, file in enumerate(files) if file is not None}
    described = {file.path for file in files if file is not None and file.sha256}

    def row_of(frame: PythonFrame, caller: int) -> SourcePlace:
        is_users = code.owns(frame.file)
        path = code.real_path(frame.file)
        if path not in number:
            number[path] = len(files)
            files.append(describe_file(path, source if is_users else "none"))
            described.add(path)
        elif is_users and path not in described:
            files[number[path]] = describe_file(path, source)  # so far listed for a module's sake alone
            described.add(path)
        name = continued_name(frame.function) or frame.function
        name, first_line = function_at(path, frame.line, name) if is_users else (name, 0)
        return SourcePlace(number[path], max(frame.line, 1), name, caller, not is_users, first_line)

    return compiled_code(record, row_of)


class _Places:
    """The header's table of places: a forest, in which a place stands once below each caller."""

    def __init__(self, row_of: Callable[[PythonFrame, int], SourcePlace]) -> None:
        self.rows: list[SourcePlace] = []
        self._index: dict[tuple[PythonFrame, int], int] = {}
        self._row_of = row_of

    def of(self, frames: Iterable[PythonFrame]) -> int:
        """The place at which a stack ends; -1 for an empty one."""
        place = -1
        for frame in frames:
            key = (frame, place)
            found = self._index.get(key)
            if found is None:
                found = self._index[key] = len(self.rows)
                self.rows.append(self._row_of(frame, place))
            place = found
        return place


_Stacks = dict[tuple[PythonFrame, ...], int]
"""Stack → how many nodes."""


def _kernel(name: str, stacks: _Stacks, places: _Places) -> CompiledKernel:
    return CompiledKernel(name, [(places.of(frames), min(nodes, _MOST_NODES)) for frames, nodes in stacks.items()])


def _kernels(graph: SeenGraph) -> Iterator[tuple[str, _Stacks]]:
    """The kernels of a graph in the order of their calls, each with its stacks."""
    stacks = _mapping(graph.stacks)
    nodes = _mapping(_mapping(graph.nodes).get("cppCodeToPost"))
    fragments = _fragments(graph.code)
    place_of = _places_of_nodes(graph.graph)
    for key in _calls(graph.code, stacks):
        name, texts = _call(key)[0], stacks[key]
        known = nodes.get(key) or fragments.get(name) or []
        at = Counter(place_of[node] for node in known if isinstance(node, str) and node in place_of)
        yield name, _weighed(texts if isinstance(texts, list) else [], at)


def _calls(code: str, stacks: dict[str, Any]) -> list[str]:
    """The kernels that a graph calls, in the order of the calls.

    Its code has them in comments. What it tells of stacks may be of other backward graphs, too: torch collects those of
    all that it compiles one after the other.
    """
    own = [key for key in _HANDLE.findall(code) if key in stacks]
    return own or sorted(stacks, key=lambda key: _call(key)[1])


def _call(key: str) -> tuple[str, int]:
    """Name of the kernel, and the number of the call."""
    name, _, number = key.rpartition(":")
    return (name, int(number)) if name and number.isdecimal() and len(number) < 10 else (key, 0)


def _weighed(texts: list[Any], nodes_at: Counter[tuple[str, int]]) -> _Stacks:
    """The stacks of a kernel with their numbers of nodes: those known of the innermost line, else the texts."""
    found: _Stacks = {}
    for text in texts:
        frames = frames_of(text) if isinstance(text, str) else ()
        if frames:
            found[frames] = found.get(frames, 0) + 1
    if not nodes_at:
        return found
    alike = Counter((frames[-1].file, frames[-1].line) for frames in found)
    seen: dict[tuple[str, int], int] = {}
    for frames in found:
        line = (frames[-1].file, frames[-1].line)
        before = seen.get(line, 0)
        seen[line] = before + 1
        # Calls of one function from several lines look alike in the graph: they have equal parts of its nodes.
        part, more = divmod(nodes_at.get(line, 0), alike[line])
        found[frames] = max(part + (before < more), 1)
    return found


def _places_of_nodes(graph: str) -> dict[str, tuple[str, int]]:
    """File and line of each node of a graph in readable form."""
    found: dict[str, tuple[str, int]] = {}
    place: tuple[str, int] | None = None
    for text in graph.splitlines():
        if (at := _PLACE.match(text)) is not None:
            place = at[1], int(at[2])
        elif _NO_PLACE.match(text):
            place = None
        elif place is not None and (node := _NODE.match(text)) is not None:
            found[node[1]] = place
    return found


def _fragments(code: str) -> dict[str, list[str]]:
    """The nodes of each kernel, as the comments above Triton's kernels list them."""
    return {name: _FRAGMENT_NODE.findall(comment) for comment, name in _FRAGMENT.findall(code)}


def _mapping(value: Any) -> dict[str, Any]:
    """A JSON object, or its text, as a mapping; an empty one for anything else."""
    if isinstance(value, str):
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            value = msgspec.json.decode(value)
    return value if isinstance(value, dict) else {}


class FunctionSpan(NamedTuple):
    """A function, from its first line (its first decorator's) to its last."""

    first_line: int
    last_line: int
    name: str
    qualified: str
    """As a code object has it: `Net.forward`, `outer.<locals>.inner`."""


def function_at(path: str, line: int, name: str) -> tuple[str, int]:
    """Qualified name and first line of the function `name` around a line; the name and 0 where the file has none."""
    around = [one for one in _functions(path) if one.name == name and one.first_line <= line <= one.last_line]
    inner = max(around, key=lambda one: one.first_line, default=None)
    return (inner.qualified, inner.first_line) if inner is not None else (name, 0)


@lru_cache(maxsize=256)
def _functions(path: str) -> tuple[FunctionSpan, ...]:
    text = source_text(path)
    if text is not None:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return tuple(_within(ast.parse(text), ""))
    return ()


def _within(node: ast.AST, prefix: str) -> Iterator[FunctionSpan]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            name = f"{prefix}{child.name}"
            yield FunctionSpan(first, child.end_lineno or child.lineno, child.name, name)
            yield from _within(child, f"{name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _within(child, f"{prefix}{child.name}.")
        else:
            yield from _within(child, prefix)
