"""Places as others name them: a path and a line from a trace or a dashboard, found in the workspace."""

from __future__ import annotations

import os

from deepscope_lsp.answers import ResolvedPath
from deepscope_lsp.engine.project import Project
from deepscope_lsp.engine.recorded_path import parts_of
from deepscope_lsp.engine.session import Session


def resolve_place(session: Session, project: Project, path: str, line: int) -> ResolvedPath | None:
    """Where a path stands here; None where nothing here answers to it.

    A path is taken as recorded first. A relative one names the file of the trace that ends with it, if only one
    does, else a file below a workspace folder.
    """
    locate = session.locate(project)
    recorded = _recorded(project, path)
    if recorded is not None and (found := locate(recorded, line)) is not None:
        return _resolved(found, known=True)
    for root in session.roots:
        below = os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - an absolute path stands as it is
        inside = parts_of(below).below(parts_of(root)) is not None
        if inside and os.path.isfile(below):  # noqa: PTH113
            return _resolved(_open_line(session, below, line), known=False)
    elsewhere = locate(path, line)
    return None if elsewhere is None else _resolved(elsewhere, known=False)


def _resolved(found: tuple[str, int], *, known: bool) -> ResolvedPath:
    return ResolvedPath(uri=found[0], line=found[1], known=known)


def _recorded(project: Project, path: str) -> str | None:
    if project.index is None:
        return None
    wanted = parts_of(path)
    files = list(project.index.files)
    for file in files:
        if parts_of(file).folded == wanted.folded:
            return file
    if path.startswith("/") or wanted.is_windows:
        return None
    ending = [file for file in files if wanted.parts and parts_of(file).common_suffix(wanted) == len(wanted.parts)]
    return ending[0] if len(ending) == 1 else None


def _open_line(session: Session, path: str, line: int) -> tuple[str, int]:
    """The line of a file that is open is where its recorded text stands now."""
    for document in session.documents.values():
        if document.path == path and document.binding is not None:
            return document.uri, document.binding.map.near(line)
    return session.to_uri(path), line
