"""From a trace to its timeline: a kept one, or one made anew."""

from __future__ import annotations

import os
from contextlib import nullcontext

from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.dashboard.timeline.kept import load, save
from deepscope.errors import NoTraceError
from deepscope.store.files import TraceFile, single_file
from deepscope.store.read import Progress

__all__ = ["open_timeline"]


def open_timeline(
    path: str | os.PathLike[str] | TraceFile,
    *,
    partial: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    workers: int | None = None,
) -> TimelineIndex:
    """The timeline of one trace file.

    Args:
        path: a trace, an fsspec URL of one, or a file as its folder lists it.
        partial: of a trace that ends early, read what is whole.
        cache: keep the timeline in the user's cache folder and take it from there.
        progress: called with bytes done and bytes in all.
        workers: as in `read_trace`.

    Raises:
        NoTraceError: nothing is there, or a folder.
        TraceError: as `load_profile`.
    """
    file = path if isinstance(path, TraceFile) else _file_at(os.fspath(path))
    if cache and (kept := load(file, partial=partial)) is not None:
        if progress is not None:
            progress(file.size_bytes, file.size_bytes)
        return TimelineIndex(kept)
    from deepscope.trace.kineto.decoders import Decoders, workers_for

    count = workers_for(file.path, file.size_bytes) if workers is None else workers
    with Decoders(count) if count else nullcontext() as decoders:
        from deepscope.dashboard.timeline.build import build_timeline
        from deepscope.trace.read import read_trace

        trace = read_trace(file.path, partial=partial, progress=progress, workers=0, decoders=decoders)
    columns = build_timeline(trace)
    if cache:
        save(file, columns, partial=partial)
    return TimelineIndex(columns)


def _file_at(path: str) -> TraceFile:
    file = single_file(path)
    if file is None:
        raise NoTraceError(f"{path}: a folder; a timeline is that of one trace")
    return file
