"""What is wanted of one trace, and how it is answered: here, in a reading process or on another machine alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, runtime_checkable

import msgspec

from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Progress
from deepscope.records import Profile, TraceInfo, View
from deepscope.records.merging import decoded
from deepscope.store.ascend.folders import rank_of_trace
from deepscope.store.cache import Kind, load_body, save_body
from deepscope.store.files import RemoteSettings, TraceFile
from deepscope.store.identity import parse_name, rank_of_all_engines


@runtime_checkable
class FilesProgress(Protocol):
    """A `Progress` that is also told how many of several files are done."""

    def __call__(self, done: int, total: int, /) -> None: ...

    def files_done(self, done: int, total: int) -> None: ...


def read_profile(
    file: TraceFile,
    view: View,
    *,
    partial: bool,
    cache: bool,
    progress: Progress | None = None,
    workers: int | None = None,
    is_alone: bool = True,
) -> Profile:
    """Analyses a trace and keeps nothing; `cache`, `workers` and `is_alone` as in `open_attribution`."""
    # If the cache has the answer, NumPy and the reader are not needed.
    from deepscope.store.opening import open_attribution

    attribution = open_attribution(
        file, partial=partial, cache=cache, is_alone=is_alone, progress=progress, workers=workers
    )
    from deepscope.analysis.build import profile_of
    from deepscope.trace.read import no_collection

    with no_collection():
        profile = profile_of(attribution, view)
    _take_from_name(file, profile.trace)
    return profile


def _take_from_name(file: TraceFile, info: TraceInfo) -> None:
    """Completes what a trace tells of itself by what its file's name does: rank and stage."""
    info.stage = info.stage or parse_name(file.name)[1]
    recorded = info.ranks[0] if info.ranks else rank_of_trace(file.path)
    rank = rank_of_all_engines(file.name, recorded, info.world_size)
    if rank is not None:
        info.ranks = [rank]
        if rank != recorded:  # how many engines there are, no file tells
            info.world_size = max(info.world_size, rank + 1)


class ReadRequest(msgspec.Struct, frozen=True):
    """A trace to be read, and what of it is wanted. The answer is that record, encoded."""

    file: TraceFile
    kind: Kind
    view: View
    partial: bool
    cache: bool


class RankRequest(msgspec.Struct, frozen=True, tag="rank"):
    """A request to another process, and how its asker reaches remote stores."""

    request: ReadRequest
    settings: RemoteSettings


class ColumnsRequest(msgspec.Struct, frozen=True, tag="columns"):
    """What is drawn from one trace's events: its memory at any moment, or its timeline, which is kept and not sent.

    With `snapshot` the file is one of torch's memory, and the answer its report.
    """

    file: TraceFile
    answer: Literal["moments", "timeline", "snapshot"]
    partial: bool = False


def kept_answer(request: ReadRequest) -> bytes | None:
    """The answer that the cache has; None where it has none or is not to be asked."""
    if not request.cache:
        return None
    body = load_body(request.kind, request.file, request.view, partial=request.partial)
    if body is not None or request.kind == "profile":
        return body
    whole = load_body("profile", request.file, request.view, partial=request.partial)
    if whole is None:
        return None
    try:
        profile = decoded(whole, Profile)
    except msgspec.MsgspecError:
        return None
    summary = _summary(profile)
    save_body("summary", request.file, summary, request.view, partial=request.partial)
    return summary


def kept_answers(files: Iterable[TraceFile], kind: Kind, view: View, *, partial: bool) -> list[bytes] | None:
    """The answers of all files, if the cache has every one; None if some trace has to be read."""
    bodies = []
    for file in files:
        body = kept_answer(ReadRequest(file, kind, view, partial, cache=True))
        if body is None:
            return None
        bodies.append(body)
    return bodies


def answer(request: ReadRequest, progress: Progress | None = None, *, workers: int | None = 0) -> bytes:
    """Reads the trace. The profile and the summary of it are kept, whichever is asked for; nothing is removed.

    Args:
        request: what is wanted.
        progress: called with bytes done and bytes in all.
        workers: processes that help to decode the trace; None for as many as are worth it.

    Raises:
        DeepScopeError: what reading raises; a `TraceError` for whatever else goes wrong with this one trace.
    """
    try:
        profile = read_profile(
            request.file,
            request.view,
            partial=request.partial,
            cache=request.cache,
            progress=progress,
            workers=workers,
            is_alone=False,
        )
        whole, summary = msgspec.msgpack.encode(profile), _summary(profile)
    except DeepScopeError:
        raise
    except Exception as error:  # a trace is input from outside: whatever it breaks is told of this rank
        raise trace_error(request.file, error) from error
    if request.cache:
        save_body("profile", request.file, whole, request.view, partial=request.partial)
        save_body("summary", request.file, summary, request.view, partial=request.partial)
    return whole if request.kind == "profile" else summary


def trace_error(file: TraceFile, error: Exception) -> TraceError:
    """What went wrong with a trace, as an error of its own."""
    if isinstance(error, TraceError):
        return error
    if isinstance(error, MemoryError):
        return TraceError(f"{file.path}: not enough memory to read it")
    if isinstance(error, UnicodeEncodeError):
        return TraceError(f"{file.path}: it has bytes in its path that are no text; rename it")
    return TraceError(f"{file.path}: {type(error).__name__}: {error}")


def _summary(profile: Profile) -> bytes:
    from deepscope.ranks.summary import summary_of

    return msgspec.msgpack.encode(summary_of(profile))
