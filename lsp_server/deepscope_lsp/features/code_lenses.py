"""Code lenses: totals over functions and classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.records import cost_ns
from deepscope_lsp.engine.files.binding import Mark
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import total_words
from deepscope_lsp.features.names import SHOW_CALLERS
from deepscope_lsp.positions import whole_line

if TYPE_CHECKING:
    from deepscope.records import Function
    from deepscope_lsp.engine.files.binding import Binding
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/codeLens`."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = server.document(params.text_document.uri)
        if document is None or document.binding is None or not server.session.settings.code_lens:
            return []
        return list(_lenses(server, document, document.binding))


def _lenses(server: DeepScopeServer, document: Document, binding: Binding) -> Iterator[types.CodeLens]:
    scales = binding.index.scales
    threshold = server.session.settings.threshold
    if binding.mark is Mark.OTHER_TEXT and server.session.settings.changed_lines == "hide":
        return
    mark = "" if binding.mark is Mark.NONE else f" ({binding.mark.value})"
    seen = set()
    for function in binding.file.functions.values():
        line = binding.map.line_of(function.line)
        if line is None or scales.weight(function) < threshold:
            continue
        seen.add(function.line)
        edited = mark or (" (edited)" if _is_edited(binding, function) else "")
        yield _lens(server, document, line, total_words(function, scales) + edited, function)
    for definition, functions in _classes(binding):
        line, part = binding.map.line_of(definition.line), scales.costs.share(*functions)
        if line is None or definition.line in seen or part < threshold:
            continue
        time, share = quantities.duration(scales.costs.per_step_ns(*functions)), quantities.share(part)
        yield _lens(server, document, line, f"{time} · {share} in its methods{mark}", None)


def _lens(
    server: DeepScopeServer, document: Document, line: int, title: str, function: Function | None
) -> types.CodeLens:
    region = whole_line(line, document.buffer.line(line), server.units)
    arguments = [{"file": function.file, "line": function.line}] if function is not None else None
    # Without a command a lens is words alone; some editors need an empty one to show it.
    command = types.Command(title, SHOW_CALLERS if function is not None else "", arguments=arguments)
    return types.CodeLens(region, command=command)


def _is_edited(binding: Binding, function: Function) -> bool:
    return any(
        record.function == function.function and binding.map.line_of(line) is None
        for line, record in binding.file.lines.items()
    )


def _classes(binding: Binding) -> Iterator[tuple[Definition, list[Function]]]:
    """Classes with their methods and the functions in these whose own time is told; totals would count calls twice."""
    functions = binding.file.functions.values()
    for definition in outline(binding.recorded_lines):
        if definition.is_class:
            found = [one for one in functions if one.function.startswith(f"{definition.name}.") and cost_ns(one)]
            if found:
                yield definition, found


_DEFINITION = re.compile(r"^([ \t]*)(?:(class)|(?:async[ \t]+)?def)[ \t]+(\w+)")


@dataclass(frozen=True, slots=True)
class Definition:
    """A `def` or `class` line (from 1) and the name as Python qualifies it (`Net.forward.<locals>.inner`)."""

    line: int
    name: str
    is_class: bool
    column: int
    """Of the bare name, in code points from 0."""


def outline(lines: Sequence[str]) -> Iterator[Definition]:
    """All definitions in order. Indentation decides what is inside of what, as in Python."""
    open_blocks: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        match = _DEFINITION.match(line)
        if match is None:
            continue
        indent = len(match[1].expandtabs())
        while open_blocks and open_blocks[-1][0] >= indent:
            open_blocks.pop()
        prefix = open_blocks[-1][1] if open_blocks else ""
        name = prefix + match[3]
        is_class = match[2] is not None
        yield Definition(number, name, is_class, match.start(3))
        open_blocks.append((indent, f"{name}." if is_class else f"{name}.<locals>."))
