"""What stands in the text of a file: code lenses, highlights, inlay hints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.records import cost_ns
from deepscope_lsp.engine.binding import Mark, ShownLine
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import annotate, total_words
from deepscope_lsp.positions import line_end, line_of, lines_of, whole_line
from deepscope_lsp.server import SHOW_CALLERS

if TYPE_CHECKING:
    from deepscope.records import Function
    from deepscope_lsp.engine.binding import Binding
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/codeLens`, `documentHighlight` and `inlayHint`."""
    _register_highlights(server)
    _register_inlay_hints(server)

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
    """Classes with their methods and the functions in these whose own time is shown; totals would count calls twice."""
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
        yield Definition(number, name, is_class)
        open_blocks.append((indent, f"{name}." if is_class else f"{name}.<locals>."))


def _register_highlights(server: DeepScopeServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        document = server.document(params.text_document.uri)
        binding = document.binding if document is not None else None
        # An editor that gets such an answer shows no other highlights: no equal words, nothing of another server.
        if document is None or binding is None or not server.session.settings.highlights:
            return None
        home = binding.map.recorded_line(line_of(params.position))
        if home is None or home not in binding.file.lines:
            return None
        path = binding.index.hot_path(binding.file.path, home)
        here = {binding.map.line_of(line.line) for line in path if line.file == binding.file.path}
        return [
            types.DocumentHighlight(
                whole_line(line, document.buffer.line(line), server.units), types.DocumentHighlightKind.Text
            )
            for line in sorted(line for line in here if line is not None)
        ]


def _register_inlay_hints(server: DeepScopeServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = server.document(params.text_document.uri)
        if document is None or document.binding is None or server.session.settings.inlay_hints == "off":
            return []
        first, last = lines_of(params.range)
        return list(_hints(server, document, first, min(last, len(document.buffer.lines))))


def _hints(server: DeepScopeServer, document: Document, first: int, last: int) -> Iterator[types.InlayHint]:
    settings = server.session.settings
    binding = document.binding
    assert binding is not None
    threshold = settings.threshold if settings.inlay_hints == "hot" else 0.0
    for shown in binding.shown_between(first, last, with_changed=settings.changed_lines == "mark"):
        note = annotate(shown.record, binding.index.scales)
        if not note.label or note.weight < threshold:
            continue
        yield types.InlayHint(
            position=line_end(shown.line, document.buffer.line(shown.line), server.units),
            label=note.fitted(_change(document, shown) + _mark(shown)),
            tooltip=note.tooltip,
            padding_left=True,
        )


def _change(document: Document, shown: ShownLine) -> str:
    """Against the baseline: `, -3.1 ms (-20 %)`; nothing where it may be noise."""
    project, binding = document.project, document.binding
    if project is None or project.baseline is None or binding is None or not project.is_baseline_chosen:
        return ""  # what changed from run to run stands in the lists; at each line it would be noise
    if project.baseline.noise(shown.record.file, shown.record.line) == "within":
        return ""
    new = binding.index.scales.costs.per_step_ns(shown.record)
    old = project.baseline.cost_per_step_ns(shown.record.file, shown.record.line)
    return f" · {quantities.change(old, new)}" if round(old) != round(new) else ""


def _mark(shown: ShownLine) -> str:
    return "" if shown.mark is Mark.NONE else f" ({shown.mark.value})"
