"""Places as others name them: a path and a line from a trace or a dashboard, found in the workspace."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence

from deepscope.store import cache
from deepscope.store.runs import STAGES, FoundTrace
from deepscope_lsp.answers import ListedTrace, ResolvedPath, Run
from deepscope_lsp.engine.path_map import parts_of
from deepscope_lsp.engine.profile_index import mean_step_ns, program_of
from deepscope_lsp.engine.project import Project
from deepscope_lsp.engine.session import EditorSession
from deepscope_lsp.engine.wording import quantities


def resolve_place(session: EditorSession, project: Project, path: str, line: int) -> ResolvedPath | None:
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


def _open_line(session: EditorSession, path: str, line: int) -> tuple[str, int]:
    """The line of a file that is open is where its recorded text stands now."""
    for document in session.documents.values():
        if document.path == path and document.binding is not None:
            return document.uri, document.binding.map.near(line)
    return session.to_uri(path), line


def listed_trace(found: FoundTrace, *, is_shown: bool, problem: str = "") -> ListedTrace:
    """One trace; `problem` is what was wrong when it was read."""
    file, head = found.file, found.identity
    kept = cache.load_kept(file, partial=False)
    info = kept.trace if kept is not None else None
    step_ns = mean_step_ns(kept) if kept is not None else None
    return ListedTrace(
        path=file.path,
        name=file.name,
        size_bytes=file.size_bytes,
        size_words=quantities.size(file.size_bytes),
        recorded_ns=found.time_ns,
        run=f"{found.run.folder}#{found.run.word}",
        program=head.program or (program_of(kept) if kept is not None else ""),
        step_ns=step_ns,
        step_time_words=_step_time_words(step_ns),
        rank=head.rank if head.rank is not None else (info.ranks[0] if info is not None and info.ranks else None),
        world_size=head.world_size,
        window=head.window,
        stage=head.stage or (info.stage if info is not None else ""),
        device=info.device if info is not None else "",
        commit=info.git_commit if info is not None else "",
        selected=is_shown,
        problem=problem or ("it does not begin as a trace does" if found.is_lost else ""),
    )


def runs_of(traces: Sequence[ListedTrace]) -> list[Run]:
    """Traces by their runs, the newest first."""
    groups: dict[str, list[ListedTrace]] = defaultdict(list)
    for trace in sorted(traces, key=lambda trace: (-trace.recorded_ns, trace.name)):
        groups[trace.run].append(trace)
    return [_run(name, members) for name, members in groups.items()]


def _run(name: str, traces: list[ListedTrace]) -> Run:
    return Run(
        id=name,
        recorded_ns=traces[0].recorded_ns,
        program=next((trace.program for trace in traces if trace.program), ""),
        step_time_words=_step_time_words(_mean_step_ns(traces)),
        ranks=len({trace.rank for trace in traces}),
        selected=any(trace.selected for trace in traces),
        traces=traces,
    )


def _mean_step_ns(traces: Sequence[ListedTrace]) -> float | None:
    """The mean over the ranks, from the newest trace of each that was read; of the training, if it is among them."""
    recorded = {trace.stage for trace in traces}
    stage = next((one for one in STAGES if one in recorded), None)
    of_rank: dict[int | None, int] = {}
    for trace in traces:
        if trace.step_ns is not None and stage in {None, trace.stage}:
            of_rank.setdefault(trace.rank, trace.step_ns)
    return sum(of_rank.values()) / len(of_rank) if of_rank else None


def _step_time_words(step_ns: float | None) -> str:
    return "" if step_ns is None else f"{quantities.duration(step_ns)} a step"
