"""Hovers on measured lines, on functions and on calls of measured functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.engine.binding import Mark
from deepscope_lsp.engine.wording.hover import function_hover, line_hover
from deepscope_lsp.positions import line_of, span, whole_line

if TYPE_CHECKING:
    from deepscope.records import Function, Line
    from deepscope_lsp.engine.binding import Binding
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer

_WORD = re.compile(r"\w+")
RULE = "\n\n---\n\n"


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/hover`."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.document(params.text_document.uri)
        if document is None or document.binding is None or not server.session.settings.hover:
            return None
        return _hover(server, document, document.binding, params.position)


def _hover(
    server: DeepScopeServer, document: Document, binding: Binding, position: types.Position
) -> types.Hover | None:
    line = line_of(position)
    text = document.buffer.line(line)
    start, end, word = _word_at(text, server.units.column(text, position.character))
    with_changed = server.session.settings.changed_lines == "mark"
    shown = binding.shown_at(line, with_changed=with_changed)
    function = _function_at(binding, line, text, word, end)
    # Without line scopes the number at a function's first line is the function's own; it is shown once.
    is_shown_twice = function is not None and shown is not None and _is_whole(shown.record, function)
    parts = []
    if function is not None and not is_shown_twice:
        parts.append(function_hover(function, server.session.hover_context(document, binding.mark)))
    if shown is not None:
        found = [finding for place, finding in server.session.findings(document) if place == line]
        context = server.session.hover_context(document, shown.mark, found if shown.mark is Mark.NONE else ())
        parts.append(line_hover(shown.record, context, now=line))
    if not parts:
        return None
    units = server.units
    region = whole_line(line, text, units) if function is None else span(line, text, start, end, units)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, RULE.join(parts)), region)


def _is_whole(record: Line, function: Function) -> bool:
    return not (record.exact or record.fused) and (record.file, record.line) == (function.file, function.line)


def _function_at(binding: Binding, line: int, text: str, word: str, end: int) -> Function | None:
    """The measured function whose name or call is under the cursor."""
    if not word:
        return None
    home = binding.map.recorded_line(line)
    if home is not None:
        defined = binding.file.functions.get(home)
        if defined is not None and defined.function.rsplit(".", 1)[-1] == word:
            return defined
    if re.match(rf"\s*(?:async\s+)?def\s+{word}\b", text):
        named = [one for one in binding.index.by_name.get(word, ()) if one.file == binding.file.path]
        return named[0] if len(named) == 1 else None
    if not text[end:].lstrip().startswith("("):
        return None
    return _called_at(binding, home, word)


def _called_at(binding: Binding, home: int | None, word: str) -> Function | None:
    """A call is resolved by what ran below the line, else by a name that only one function has."""
    named = binding.index.by_name.get(word, [])
    if home is not None:
        reached = {(call.line.file, call.line.function) for call in binding.index.callees(binding.file.path, home)}
        called = [one for one in named if (one.file, one.function) in reached]
        if called:
            return called[0]
        # `self.encoder(x)` runs `Encoder.forward`: the module's attribute names no function.
        forwards = [one for one in binding.index.by_name.get("forward", ()) if (one.file, one.function) in reached]
        if len(forwards) == 1 and len(reached) == 1:
            return forwards[0]
    return named[0] if len(named) == 1 else None


def _word_at(text: str, column: int) -> tuple[int, int, str]:
    for match in _WORD.finditer(text):
        if match.start() <= column <= match.end():
            return match.start(), match.end(), match[0]
    return 0, 0, ""
