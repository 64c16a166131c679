"""One trace read: its events with everything joined, and the Profile made of them.

What is wanted of it is a request, answered alike in this process, in a worker and on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from deepscope.errors import DeepScopeError, TraceError
from deepscope.processes import Progress
from deepscope.records import Profile, TraceInfo, View
from deepscope.records.merging import decoded
from deepscope.store.ascend.folders import rank_of_trace
from deepscope.store.cache import Kind, has_columns, load_body, load_columns, save_body, save_columns
from deepscope.store.files import RemoteSettings, TraceFile
from deepscope.store.trace_identity import parse_name, rank_of_all_engines

if TYPE_CHECKING:
    from deepscope.analysis.ownership.attribution import Attribution


class Parsed(NamedTuple):
    """A trace that was parsed, to be kept once the question that needed it is answered."""

    file: TraceFile
    partial: bool
    attribution: Attribution


_parsed: ContextVar[list[Parsed] | None] = ContextVar("deepscope_parsed", default=None)


@contextmanager
def collect_parsed() -> Iterator[list[Parsed]]:
    """Collects the traces that are parsed within, but for those of several ranks: of these their Profiles are kept."""
    found: list[Parsed] = []
    token = _parsed.set(found)
    try:
        yield found
    finally:
        _parsed.reset(token)


def keep_parsed(parsed: Parsed) -> None:
    """Writes a parsed trace where `open_attribution` finds it."""
    save_columns("attribution", parsed.file, parsed.attribution, partial=parsed.partial)


def open_attribution(
    file: TraceFile,
    *,
    partial: bool = False,
    cache: bool = True,
    is_alone: bool = True,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Attribution:
    """A trace with everything joined: as the cache has it, else parsed anew.

    Args:
        file: the trace.
        partial: of one that ends early, read what is whole.
        cache: ask the cache.
        is_alone: it is no rank of several that are read.
        progress: called with bytes done and bytes in all.
        workers: processes that help to decode the trace; None for as many as are worth it.

    Raises:
        TraceError: as `load_profile`.
    """
    # Helping processes start during the imports.
    from deepscope.trace.kineto.parallel import Decoders, workers_for

    is_kept = cache and has_columns("attribution", file, partial=partial)
    count = 0 if is_kept else workers_for(file.path, file.size_bytes) if workers is None else workers
    with Decoders(count) if count else nullcontext() as decoders:
        from deepscope.trace.read import no_collection, read_trace

        with no_collection():
            from deepscope.analysis.ownership.attribution import Attribution, attribute

            kept = load_columns("attribution", file, Attribution, partial=partial) if is_kept else None
            if kept is not None:
                if progress is not None:
                    progress(file.size_bytes, file.size_bytes)
                return kept
            trace = read_trace(file.path, partial=partial, progress=progress, workers=0, decoders=decoders)
            attribution = attribute(trace)
    if is_alone and (found := _parsed.get()) is not None:
        found.append(Parsed(file, partial, attribution))
    return attribution


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


@runtime_checkable
class FilesProgress(Protocol):
    """A `Progress` that is also told how many of several files are done."""

    def __call__(self, done: int, total: int, /) -> None: ...

    def files_done(self, done: int, total: int) -> None: ...


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


WORKER = "deepscope.worker"
"""The module that a process runs to answer these requests."""

ReadAnswer: TypeAlias = bytes | DeepScopeError
"""A record, encoded, or why there is none."""
OnAnswer: TypeAlias = Callable[[int, ReadAnswer], None]
"""Called, in the caller's thread, with the index of a request and its answer."""


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
    from deepscope.ranks.rank_summary import summary_of

    return msgspec.msgpack.encode(summary_of(profile))
