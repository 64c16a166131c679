"""From a trace to its timeline: a kept one, or one made anew."""

from __future__ import annotations

import os
from contextlib import nullcontext

import msgspec

from deepscope.dashboard.timeline.columns import Columns
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.dashboard.timeline.kept import can_keep, load, save
from deepscope.errors import NoTraceError, TraceError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError
from deepscope.store.files import TraceFile, single_file
from deepscope.store.read import Progress
from deepscope.trace.kineto.source import likely_json_bytes

__all__ = ["APART_BYTES", "Request", "make_timeline", "open_timeline"]

APART_BYTES = 32 << 20
"""Of JSON: a larger trace is read in a process of its own, so that its memory is free again and nobody waits for the
interpreter meanwhile."""
_PROCESS = "deepscope.dashboard.timeline.making_process"


class Request(msgspec.Struct):
    """A trace whose timeline is to be made and kept; the fields of `TraceFile`."""

    path: str
    size_bytes: int
    mtime_ns: int
    token: str
    partial: bool


def open_timeline(
    path: str | os.PathLike[str] | TraceFile,
    *,
    partial: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> TimelineIndex:
    """The timeline of one trace file.

    Args:
        path: a trace, an fsspec URL of one, or a file as its folder lists it.
        partial: of a trace that ends early, read what is whole.
        cache: keep the timeline in the user's cache folder and take it from there.
        progress: called with bytes done and bytes in all.

    Raises:
        NoTraceError: nothing is there, or a folder.
        TraceError: as `load_profile`.
    """
    file = path if isinstance(path, TraceFile) else _file_at(os.fspath(path))
    cache = cache and file.has_version
    kept = load(file, partial=partial) if cache else None
    if kept is None and cache and likely_json_bytes(file.path, file.size_bytes) >= APART_BYTES and can_keep():
        kept = _made_apart(file, partial=partial, progress=progress)
    if kept is None:
        columns = make_timeline(file, partial=partial, progress=progress)
        if cache:
            save(file, columns, partial=partial)
        return TimelineIndex(columns)
    if progress is not None:
        progress(file.size_bytes, file.size_bytes)
    return TimelineIndex(kept)


def make_timeline(file: TraceFile, *, partial: bool, progress: Progress | None = None) -> Columns:
    """Reads a trace and makes its timeline, in this process.

    Raises:
        TraceError: as `load_profile`.
    """
    # Helping processes start during the imports.
    from deepscope.trace.kineto.decoders import Decoders, workers_for

    count = workers_for(file.path, file.size_bytes)
    with Decoders(count) if count else nullcontext() as decoders:
        from deepscope.dashboard.timeline.build import build_timeline
        from deepscope.trace.read import read_trace

        trace = read_trace(file.path, partial=partial, progress=progress, workers=0, decoders=decoders)
    return build_timeline(trace)


def _made_apart(file: TraceFile, *, partial: bool, progress: Progress | None) -> Columns | None:
    """The timeline that another process has made and kept; None where there is no process, or it could not be kept."""
    process = HelperProcess.start(_PROCESS, is_quiet=True)
    if process is None:
        return None
    request = Request(file.path, file.size_bytes, file.mtime_ns, file.token, partial)
    try:
        process.ask(msgspec.msgpack.encode(request), progress)
    except UnicodeEncodeError:  # a path that is no text
        return None
    except (ProcessEndedError, MessageError, MemoryError) as error:
        words = str(error) if isinstance(error, MessageError) else "not enough memory to read it"
        raise TraceError(f"{file.path}: {words}") from error
    finally:
        process.end()
    return load(file, partial=partial)


def _file_at(path: str) -> TraceFile:
    file = single_file(path)
    if file is None:
        raise NoTraceError(f"{path}: a folder; a timeline is that of one trace")
    return file
