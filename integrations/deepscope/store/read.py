"""One trace file to its Profile, from the cache or from the trace itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Protocol, runtime_checkable

import msgspec

from deepscope.records import Profile, View
from deepscope.store.ascend.folders import rank_of_trace
from deepscope.store.files import TraceFile

__all__ = ["FilesProgress", "Progress", "cached_profile", "read_profile"]

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


@runtime_checkable
class FilesProgress(Protocol):
    """A `Progress` that is also told how many of several files are done."""

    def __call__(self, done: int, total: int, /) -> None: ...

    def files_done(self, done: int, total: int) -> None: ...


def cached_profile(file: TraceFile, view: View, *, partial: bool, cache: bool) -> Profile | None:
    """The profile that the cache has of a file; None where it has none or is not to be asked."""
    if not cache:
        return None
    from deepscope.store.cache import load

    return load(file, view, partial=partial)


def read_profile(
    file: TraceFile,
    view: View,
    *,
    partial: bool,
    cache: bool,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Profile:
    """Reads and analyses a trace, keeps the profile in the cache if wanted; `workers` as in `read_trace`."""
    # If the cache has the answer, NumPy and the reader are not needed. Helping processes start during these imports.
    from deepscope.trace.kineto.decoders import Decoders, workers_for

    count = workers_for(file.path, file.size_bytes) if workers is None else workers
    with Decoders(count) if count else nullcontext() as decoders:
        from deepscope.trace.read import no_collection, read_trace

        with no_collection():
            from deepscope.analysis.build import build_profile

            trace = read_trace(file.path, partial=partial, progress=progress, workers=0, decoders=decoders)
    with no_collection():
        profile = build_profile(trace, **msgspec.structs.asdict(view))
    if not profile.trace.ranks and (rank := rank_of_trace(file.path)) is not None:
        profile.trace.ranks = [rank]
    if cache:
        from deepscope.store.cache import save

        save(file, profile, view, partial=partial)
    return profile
