"""Code actions on DeepScope's diagnostics: hide, show callers, and the edit itself where a remedy is mechanical."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.engine.answering.status import can_be_tried
from deepscope_lsp.positions import line_of, span
from deepscope_lsp.server import HIDE_FINDING, SHOW_CALLERS, SHOW_TRY_COMMAND, SOURCE

if TYPE_CHECKING:
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/codeAction`."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.document(params.text_document.uri)
        if document is None or document.binding is None:
            return []
        only = params.context.only
        if only and not any(str(getattr(kind, "value", kind)) in {"", "quickfix"} for kind in only):
            return []
        mine = [one for one in params.context.diagnostics if one.source == SOURCE]
        return [action for diagnostic in mine for action in _actions(server, document, diagnostic)]


def _actions(server: DeepScopeServer, document: Document, diagnostic: types.Diagnostic) -> Iterator[types.CodeAction]:
    yield from _remedies(server, document, diagnostic)
    binding = document.binding
    assert binding is not None
    code = str(diagnostic.code)
    anywhere = {"code": code, **_root(server, document)}
    if document.project is not None and can_be_tried(server.session, document.project, code):
        yield _command(f"Try what answers {code} (DeepScope)", SHOW_TRY_COMMAND, anywhere, diagnostic)
    line = binding.map.recorded_line(line_of(diagnostic.range.start))
    if line is not None:
        place = {"file": binding.file.path, "line": line, **_root(server, document)}
        yield _command("Show callers (DeepScope)", SHOW_CALLERS, place, diagnostic)
        if binding.index.text_of(binding.file.path, line).strip():
            here = {"code": code, **place}
            yield _command(f"Hide {code} on this line (DeepScope)", HIDE_FINDING, here, diagnostic)
    file = {**anywhere, "file": binding.file.path}
    yield _command(f"Hide {code} in this file (DeepScope)", HIDE_FINDING, file, diagnostic)
    yield _command(f"Hide {code} everywhere (DeepScope)", HIDE_FINDING, anywhere, diagnostic)


def _root(server: DeepScopeServer, document: Document) -> dict[str, str]:
    """Which workspace folder, where there are several."""
    project = document.project
    return {"root": server.session.to_uri(project.root)} if project and len(server.session.projects) > 1 else {}


def _remedies(server: DeepScopeServer, document: Document, diagnostic: types.Diagnostic) -> Iterator[types.CodeAction]:
    """The edit of a finding, if each line that it changes still has the recorded text."""
    binding = document.binding
    assert binding is not None
    for line, finding in server.session.findings(document):
        if finding.code != diagnostic.code or line != line_of(diagnostic.range.start):
            continue
        edits = []
        for edit in finding.remedy.edits:
            place = binding.map.line_of(edit.line)
            text = document.buffer.line(place or 0)
            start = text.find(edit.old) if edit.old else -1
            if place is None or start < 0:
                break
            region = span(place, text, start, start + len(edit.old), server.units)
            edits.append(types.TextEdit(region, edit.new))
        else:
            if edits:
                yield types.CodeAction(
                    f"{finding.title}: apply the remedy (DeepScope)",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic],
                    is_preferred=True,
                    edit=types.WorkspaceEdit(changes={document.uri: edits}),
                )


def _command(title: str, name: str, argument: Mapping[str, object], diagnostic: types.Diagnostic) -> types.CodeAction:
    return types.CodeAction(
        title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        command=types.Command(title, name, arguments=[argument]),
    )
