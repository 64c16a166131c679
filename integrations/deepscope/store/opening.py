"""From a trace file to its events with everything joined: parsed and attributed once, then mapped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from deepscope.processes import Progress
from deepscope.store.cache import has_columns, load_columns, save_columns
from deepscope.store.files import TraceFile

if TYPE_CHECKING:
    from deepscope.analysis.ownership.attribution import Attribution


class Parsed(NamedTuple):
    """A trace that was parsed, to be kept once the question that needed it is answered."""

    file: TraceFile
    partial: bool
    attribution: Attribution


_parsed: ContextVar[list[Parsed] | None] = ContextVar("deepscope_parsed", default=None)


@contextmanager
def parsed_within() -> Iterator[list[Parsed]]:
    """Collects the traces that are parsed within, but for those of several ranks: of these their Profiles are kept."""
    found: list[Parsed] = []
    token = _parsed.set(found)
    try:
        yield found
    finally:
        _parsed.reset(token)


def keep(parsed: Parsed) -> None:
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
