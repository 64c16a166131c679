"""From a trace to its timeline: a kept one, or one made anew."""

from __future__ import annotations

import os

import msgspec

from deepscope.dashboard.timeline.columns import Columns
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.errors import NoTraceError, TraceError
from deepscope.processes import MessageError, ProcessEndedError, Progress
from deepscope.store.cache import can_keep, load_columns, save_columns
from deepscope.store.files import TraceFile, single_file
from deepscope.store.opening import keep, open_attribution, parsed_within
from deepscope.store.requests import ColumnsRequest
from deepscope.store.workers import worker
from deepscope.trace.kineto.source import likely_json_bytes

APART_BYTES = 32 << 20
"""Of JSON: a larger trace is read in a process of its own, so that its memory is free again and nobody waits for the
interpreter meanwhile."""


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
    kept = load_columns("timeline", file, Columns, partial=partial) if cache else None
    if kept is None and cache and likely_json_bytes(file.path, file.size_bytes) >= APART_BYTES and can_keep():
        kept = _made_apart(file, partial=partial, progress=progress)
    if kept is None:
        kept = make_timeline(file, partial=partial, cache=cache, progress=progress)
    elif progress is not None:
        progress(file.size_bytes, file.size_bytes)
    return TimelineIndex(kept)


def make_timeline(file: TraceFile, *, partial: bool, cache: bool = True, progress: Progress | None = None) -> Columns:
    """Makes the timeline of a trace in this process and keeps it, and what was parsed for it, where `cache` is set.

    Raises:
        TraceError: as `load_profile`.
    """
    with parsed_within() as parsed:
        of = open_attribution(file, partial=partial, cache=cache, progress=progress)
    from deepscope.dashboard.timeline.build import build_timeline  # behind the start of helping processes

    columns = build_timeline(of)
    if cache:
        save_columns("timeline", file, columns, partial=partial)
        for one in parsed:
            keep(one)
    return columns


def _made_apart(file: TraceFile, *, partial: bool, progress: Progress | None) -> Columns | None:
    """The timeline that another process has made and kept; None where there is no process, or it could not be kept."""
    try:
        with worker() as process:
            if process is None:
                return None
            process.ask(msgspec.msgpack.encode(ColumnsRequest(file, "timeline", partial)), progress)
    except UnicodeEncodeError:  # a path that is no text
        return None
    except (ProcessEndedError, MessageError, MemoryError) as error:
        words = str(error) if isinstance(error, MessageError) else "not enough memory to read it"
        raise TraceError(f"{file.path}: {words}") from error
    return load_columns("timeline", file, Columns, partial=partial)


def _file_at(path: str) -> TraceFile:
    file = single_file(path)
    if file is None:
        raise NoTraceError(f"{path}: a folder; a timeline is that of one trace")
    return file
