"""`deepscope try` on the program that was recorded, for the remedies of a finding."""

from __future__ import annotations

import os
import re

from deepscope.errors import NoTraceError
from deepscope.trace.kineto.remote import is_url
from deepscope.trials.remedies import remedies_of
from deepscope_lsp.answers import TryCommand
from deepscope_lsp.engine.project import Project
from deepscope_lsp.engine.session import Session
from deepscope_lsp.uris import to_path

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def can_be_tried(session: Session, project: Project, code: str) -> bool:
    """Whether a remedy of the finding can be applied from outside, to a program that is here."""
    return bool(remedies_of(code)) and _program(session, project) != []


def try_command(session: Session, project: Project, code: str) -> TryCommand:
    """The command's words; the program's own arguments, which no trace tells, go behind them.

    Raises:
        NoTraceError: nothing is shown, no remedy of the finding can be applied, or the program is not here.
    """
    if not remedies_of(code):
        raise NoTraceError(
            f"{code}: none of its remedies can be applied from outside; change the code, then `deepscope verify`"
        )
    program = _program(session, project)
    if project.index is None or not program:
        raise NoTraceError("the program that was recorded is not in this workspace, or the trace does not tell it")
    path = project.index.profile.trace.path
    trace = [] if is_url(path) or not os.path.isfile(path) else ["--trace", path]  # noqa: PTH113
    return TryCommand(arguments=["try", code, *trace, "--", *program], folder=project.root, program=program[-1])


def _program(session: Session, project: Project) -> list[str]:
    """What runs the recorded program: its file, or `-m` and its name; nothing where neither is here."""
    if project.index is None:
        return []
    trace = project.index.profile.trace
    here = session.file_here(project, f"{trace.project_root}/{trace.program}") if trace.program else None
    path = to_path(here.uri) if here is not None else None
    if path and os.path.isfile(path):  # noqa: PTH113
        return [path]
    is_module = _MODULE.fullmatch(trace.program) is not None and trace.program != "notebook"
    return ["-m", trace.program] if is_module and not trace.program.endswith(".py") else []
