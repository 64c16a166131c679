"""Tells the editor that what it shows is out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepscope_lsp.answers import State, Status
from deepscope_lsp.engine.answering.status import status_of
from deepscope_lsp.features import diagnostics
from deepscope_lsp.features.names import STATUS

if TYPE_CHECKING:
    from deepscope_lsp.engine.project import Project
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
    status = status_now(server, project, state, message)
    if status != project.shown_status:
        project.shown_status = status
        server.protocol.notify(STATUS, status)


def status_now(server: DeepScopeServer, project: Project, state: State, message: str = "") -> Status:
    """What is shown of a project."""
    return status_of(project, server.session.to_uri(project.root) if project.root else None, state, message)
