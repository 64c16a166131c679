"""What the server asks of the editor: to show things anew, and questions to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from lsprotocol import types

from deepscope_lsp.answers import State
from deepscope_lsp.engine.status import status_of
from deepscope_lsp.engine.wording.quantities import in_message
from deepscope_lsp.features import diagnostics
from deepscope_lsp.server import STATUS

if TYPE_CHECKING:
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.engine.session import FileQuestion
    from deepscope_lsp.server import DeepScopeServer


def refresh(server: DeepScopeServer) -> None:
    """Asks for hints, lenses and diagnostics anew, as far as the editor can be asked."""
    workspace = server.client_capabilities.workspace
    if workspace is not None:
        if workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            server.workspace_inlay_hint_refresh(None)
        if workspace.code_lens is not None and workspace.code_lens.refresh_support:
            server.workspace_code_lens_refresh(None)
        if workspace.diagnostics is not None and workspace.diagnostics.refresh_support:
            server.workspace_diagnostic_refresh(None)
    for document in server.session.documents.values():
        diagnostics.publish(server, document)


def tell_status(server: DeepScopeServer, project: Project, state: State, message: str = "") -> None:
    """Sends `$/deepscope/status`, what a status item in an editor shows, unless nothing of it has changed."""
    if not any(one is project for one in server.session.projects):  # its folder was closed meanwhile
        return
    status = status_of(project, state, message)
    if status != project.shown_status:
        project.shown_status = status
        server.protocol.notify(STATUS, status)


NONE_OF_THEM = "None of them"
SHOWN_CANDIDATES = 6


def ask(server: DeepScopeServer, question: FileQuestion) -> None:
    """Asks once per file and profile, beside the message loop."""
    name = question.document.path or question.document.uri
    if name in question.project.asked:
        return
    question.project.asked.add(name)
    server.start(_ask(server, question, name))


def rebind_all(server: DeepScopeServer) -> None:
    """Finds anew which recorded file each open document is, and asks where two fare alike."""
    for question in server.session.rebind_all():
        ask(server, question)


async def _ask(server: DeepScopeServer, question: FileQuestion, name: str) -> None:
    titles = [*question.candidates[:SHOWN_CANDIDATES], NONE_OF_THEM]
    question_words = f"{unquote(name)} may be one of several files in the DeepScope trace. Which one is it?"
    params = types.ShowMessageRequestParams(
        types.MessageType.Info, in_message(question_words), [types.MessageActionItem(title) for title in titles]
    )
    chosen = await server.ask(server.window_show_message_request_async(params), patience_seconds=None)
    document, project = question.document, question.project
    is_current = server.document(document.uri) is document and document.binding is None and project.index is not None
    if chosen is None or chosen.title not in question.candidates or not is_current:
        return
    if project.index is None or chosen.title not in project.index.files:
        return
    server.session.bind(project, document, chosen.title)
    if document.path is None:
        project.picked[document.uri] = chosen.title
    else:
        project.learn({chosen.title: document.path})
    refresh(server)
