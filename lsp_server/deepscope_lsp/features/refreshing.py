"""Tells the editor that what it shows is out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepscope.records import Profile
from deepscope_lsp.engine.step_times import mean_step_ns, steps_differ
from deepscope_lsp.engine.trace_list import program_of
from deepscope_lsp.features import diagnostics

if TYPE_CHECKING:
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

__all__ = ["STATUS", "refresh", "tell_status"]

STATUS = "$/deepscope/status"
"""Sent when a project's state changes; `$/` notifications that an editor does not know are ignored silently."""

NO_LINES = "no line of user code is in this trace; record with deepscope, or with torch's with_stack=True"


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


def tell_status(server: DeepScopeServer, project: Project, state: str, message: str = "") -> None:
    """Sends `$/deepscope/status`, what a status item in an editor shows, unless nothing of it has changed."""
    status = status_object(server, project, state, message)
    if status != project.told:
        project.told = status
        server.protocol.notify(STATUS, status)


def status_object(server: DeepScopeServer, project: Project, state: str, message: str = "") -> dict[str, Any]:
    """State (`loading`, `ready`, `none`, `error`), the trace and its main figures."""
    profile = project.index.profile if project.index is not None else None
    if state == "ready" and not message and profile is not None and not profile.lines:
        message = NO_LINES
    newer = project.newer
    if state == "ready" and not message and newer is not None:
        message = f"{newer.trace.path} is newer, and no code of it is here"
    baseline = project.baseline_index.profile if project.baseline_index is not None else None
    comparison = None
    if baseline is not None and profile is not None:
        comparison = {"isChosen": project.is_baseline_chosen, "stepsDiffer": steps_differ(baseline, profile)}
    return {
        "state": state,
        "message": message,
        "root": server.session.to_uri(project.root) if project.root else None,
        "trace": None if profile is None else trace_object(profile),
        "baseline": None if baseline is None else trace_object(baseline),
        "comparison": comparison,
        "newer": None if newer is None else trace_object(newer),
    }


def trace_object(profile: Profile) -> dict[str, Any]:
    """What is said of a trace."""
    info, totals = profile.trace, profile.totals
    return {
        "path": info.path,
        "paths": info.paths or [info.path],
        "metric": profile.metric,
        "device": info.device,
        "recordedAt": info.recorded_at,
        "program": program_of(profile),
        "stepNs": mean_step_ns(profile),
        "stage": info.stage,
        "alsoRecorded": info.also_recorded,
        "ranks": info.ranks,
        "steps": totals.steps,
        "step": profile.step,
        "firstStep": min((step.number for step in profile.steps), default=None),
        "lastStep": max((step.number for step in profile.steps), default=None),
        "commit": info.git_commit,
        "dirty": info.git_dirty,
        "deviceNs": totals.device_ns,
        "busyNs": totals.busy_ns,
        "idleNs": totals.idle_ns,
        "wallNs": totals.wall_ns,
        "warnings": info.warnings,
    }
