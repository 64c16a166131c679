"""One trace file to its Profile, from the cache or from the trace itself."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from deepscope.processes import Progress
from deepscope.records import Profile, View
from deepscope.store.ascend.folders import rank_of_trace
from deepscope.store.files import TraceFile


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
    if not profile.trace.ranks and (rank := rank_of_trace(file.path)) is not None:
        profile.trace.ranks = [rank]
    return profile
