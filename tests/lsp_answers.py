"""Every feature's answer about one document as a text that a reviewer can read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from lsprotocol import types

from lsp_editor import Editor

__all__ = ["every_answer"]


async def every_answer(editor: Editor, uri: str, *, line: int, definition: int, name: str) -> str:
    """What the server answers about a document.

    Args:
        editor: connected, with a profile shown.
        uri: of an open document.
        line: one that is measured.
        definition: where a measured function is defined.
        name: that function's bare name.
    """
    sections = [section async for section in _sections(editor, uri, line, definition, name)]
    return "\n\n".join(f"== {title}\n{text}" for title, text in sections) + "\n"


async def _sections(editor: Editor, uri: str, line: int, definition: int, name: str) -> AsyncIterator[tuple[str, str]]:
    document = types.TextDocumentIdentifier(uri)
    region = types.Range(types.Position(0, 0), types.Position(9_999, 0))
    place = types.Position(line - 1, 9)
    hints = await editor.text_document_inlay_hint_async(types.InlayHintParams(document, region))
    yield "inlay hints", "\n".join(f"{_place(one.position)} {one.label} | {one.tooltip}" for one in hints or ())
    lenses = await editor.text_document_code_lens_async(types.CodeLensParams(document))
    yield "code lenses", "\n".join(f"{_range(one.range)} {one.command and one.command.title}" for one in lenses or ())
    yield f"hover on line {line}", await editor.hover(uri, line, 9)
    column = (await _text_of(editor, uri, definition)).find(name)
    yield f"hover on {name}", await editor.hover(uri, definition, column)
    diagnostics = await editor.pull(uri)
    yield "diagnostics", "\n".join(_diagnostic(one) for one in diagnostics)
    for one in diagnostics[:1]:
        yield f"code actions on {one.code}", "\n".join(await editor.actions(uri, one))
    symbols = await editor.workspace_symbol_async(types.WorkspaceSymbolParams(name[:3]))
    yield "workspace symbols", "\n".join(_symbol(one) for one in symbols or ())
    highlights = await editor.text_document_document_highlight_async(types.DocumentHighlightParams(document, place))
    yield f"highlights of line {line}", "\n".join(_range(one.range) for one in highlights or ())
    place = await editor.command("recordedLine", uri=uri, line=line)
    for command, argument in [*_commands(uri, line), ("linePaths", {"file": place["file"], "line": place["line"]})]:
        yield f"deepscope.{command} {json.dumps(argument)}", _json(await editor.command(command, **argument))


def _commands(uri: str, line: int) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("hotLines", {"limit": 1}),
        ("callPaths", {"minShare": 0.5}),
        ("modules", {"limit": 1}),
        ("findings", {}),
        ("callers", {"uri": uri, "line": line}),
        ("annotations", {"uri": uri}),
        ("resolvePath", {"path": "train.py", "line": line}),
        ("listTraces", {"limit": 1}),
        ("listRuns", {"limit": 1}),
        ("status", {}),
    ]


async def _text_of(editor: Editor, uri: str, line: int) -> str:
    return editor.texts[uri].split("\n")[line - 1]


def _diagnostic(one: types.Diagnostic) -> str:
    rows = [f"{_range(one.range)} {one.code} {one.severity and one.severity.name} {one.message}"]
    if one.code_description is not None:
        rows.append(f"    see {one.code_description.href.rsplit('/docs/', 1)[-1]}")
    rows += [f"    {_range(of.location.range)} {of.message}" for of in one.related_information or ()]
    return "\n".join(rows)


def _symbol(one: types.SymbolInformation | types.WorkspaceSymbol) -> str:
    assert isinstance(one, types.SymbolInformation)
    return f"{one.name} ({one.kind.name}, {one.container_name}) {_range(one.location.range)}"


def _place(position: types.Position) -> str:
    return f"{position.line + 1}:{position.character}"


def _range(region: types.Range) -> str:
    return f"{_place(region.start)}-{_place(region.end)}"


def _json(answer: Any) -> str:
    return json.dumps(_short(answer), indent=1, ensure_ascii=False)


def _short(answer: Any) -> Any:
    """Lists cut to what shows their shape."""
    if isinstance(answer, dict):
        return {name: _short(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_short(one) for one in answer[:2]] + ([f"… {len(answer) - 2} more"] if len(answer) > 2 else [])
    return answer
