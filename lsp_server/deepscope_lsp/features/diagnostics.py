"""Diagnostics on hot lines and findings, and the code actions on them.

Diagnostics are pulled by editors that pull and pushed to the others. The actions hide one, show callers, or are the
edit itself where a remedy is mechanical.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.engine.binding import Mark
from deepscope_lsp.engine.source_files import to_uri
from deepscope_lsp.engine.status import can_be_tried
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import annotate
from deepscope_lsp.engine.wording.findings import finding_words, page_uri
from deepscope_lsp.positions import line_of, line_start, span, whole_line
from deepscope_lsp.server import HIDE_FINDING, HOT_LINE, SHOW_CALLERS, SHOW_TRY_COMMAND, SOURCE

if TYPE_CHECKING:
    from deepscope.records import Finding
    from deepscope_lsp.engine.binding import Binding, ShownLine
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer


CALLERS = 4
SEVERITIES = {
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/diagnostic` and `codeAction`."""
    _register_code_actions(server)

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        # Their related places stand in other files, whose edits move them.
        types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="deepscope"),
    )
    def pull(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
        document = server.document(params.text_document.uri)
        items = [] if document is None else diagnose(server, document)
        return types.RelatedFullDocumentDiagnosticReport(items)


def publish(server: DeepScopeServer, document: Document) -> None:
    """Pushes a document's diagnostics to an editor that does not pull them."""
    if not _pulls(server):
        _push(server, document.uri, diagnose(server, document), document.version)


def publish_soon(server: DeepScopeServer, document: Document) -> None:
    """Pushes after the typing has stopped for a moment."""
    if not _pulls(server) and document.binding is not None:
        server.when_quiet(document, lambda: publish(server, document))


def clear(server: DeepScopeServer, document: Document) -> None:
    """Takes a closed document's diagnostics back."""
    if not _pulls(server) and document.binding is not None:
        _push(server, document.uri, [], None)


def diagnose(server: DeepScopeServer, document: Document) -> list[types.Diagnostic]:
    """The diagnostics of a document; only lines whose text is what ran have any."""
    binding = document.binding
    if binding is None or document.project is None:
        return []
    wanted = server.session.settings.diagnostics
    found: list[types.Diagnostic] = []
    if wanted in ("findings", "all"):
        found.extend(_from_finding(server, document, line, one) for line, one in server.session.findings(document))
    if wanted in ("hotLines", "all") and binding.mark is Mark.NONE:
        found.extend(_hot_lines(server, document, document.project, binding))
    return sorted(found, key=lambda one: (one.range.start.line, str(one.code)))


def _hot_lines(
    server: DeepScopeServer, document: Document, project: Project, binding: Binding
) -> Iterator[types.Diagnostic]:
    threshold = server.session.settings.threshold
    for record in binding.file.lines.values():
        share = binding.index.scales.costs.share(record)
        line = binding.map.line_of(record.line) if share >= threshold and share > 0 else None
        if line is None or server.session.is_hidden(project, HOT_LINE, record.file, record.line):
            continue
        shown = binding.shown_at(line, with_changed=False)
        if shown is not None:
            yield _hot_line(server, document, binding, shown)


def _hot_line(server: DeepScopeServer, document: Document, binding: Binding, shown: ShownLine) -> types.Diagnostic:
    scales, record = binding.index.scales, shown.record
    note = annotate(record, scales)
    return types.Diagnostic(
        range=whole_line(shown.line, document.buffer.line(shown.line), server.units),
        severity=types.DiagnosticSeverity.Hint,
        code=HOT_LINE,
        code_description=_description(HOT_LINE, ""),
        source=SOURCE,
        message=(
            f"Hot line: {quantities.share(scales.costs.share(record))} of the run's cost, "
            f"{quantities.duration(scales.costs.per_step_ns(record))} {scales.step_words}: {note.parts}"
        ),
        related_information=_callers(server, document, record.file, record.line),
        data={"code": HOT_LINE, "file": record.file, "line": record.line},
    )


def _from_finding(server: DeepScopeServer, document: Document, line: int, finding: Finding) -> types.Diagnostic:
    binding = document.binding
    assert binding is not None
    return types.Diagnostic(
        range=whole_line(line, document.buffer.line(line), server.units),
        severity=SEVERITIES.get(finding.severity, types.DiagnosticSeverity.Information),
        code=finding.code,
        code_description=_description(finding.code, finding.doc),
        source=SOURCE,
        message=finding_words(finding, binding.index.scales, binding.index.profile.tries),
        related_information=_callers(server, document, finding.file, finding.line, with_time=False),
        data={"code": finding.code, "file": finding.file, "line": finding.line},
    )


def _callers(
    server: DeepScopeServer, document: Document, file: str, line: int, *, with_time: bool = True
) -> list[types.DiagnosticRelatedInformation]:
    """The lines that call a line, with its time from there: a finding's own figures are of something else."""
    binding, project = document.binding, document.project
    assert binding is not None
    assert project is not None
    locate = server.session.locate(project)
    related = []
    for call in binding.index.callers(file, line)[:CALLERS]:
        found = locate(call.line.file, call.line.line)
        if found is not None:
            duration = quantities.duration(binding.index.scales.per_step(call.device_ns or call.cpu_ns))
            how = "backward run by" if call.is_backward else "called from"
            related.append(
                types.DiagnosticRelatedInformation(
                    types.Location(found[0], line_start(found[1])),
                    f"{how} {call.line.function}" + (f", {duration}" if with_time else ""),
                )
            )
    return related


def _description(code: str, doc: str) -> types.CodeDescription | None:
    uri = page_uri(code, doc)
    return None if uri is None else types.CodeDescription(uri)


def _pulls(server: DeepScopeServer) -> bool:
    capabilities = server.client_capabilities.text_document
    return capabilities is not None and capabilities.diagnostic is not None


def _push(server: DeepScopeServer, uri: str, items: list[types.Diagnostic], version: int | None) -> None:
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, items, version))


def _register_code_actions(server: DeepScopeServer) -> None:
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
    return {"root": to_uri(project.root)} if project and len(server.session.projects) > 1 else {}


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
