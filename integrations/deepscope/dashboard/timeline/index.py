"""The timeline of one trace, ready for questions: made, or taken from what was kept."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from functools import cached_property

import msgspec
import numpy as np

from deepscope.dashboard.timeline.answers import (
    Durations,
    Matches,
    Selection,
    SliceDetails,
    SliceKind,
    Timeline,
    Window,
)
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, TimelineColumns
from deepscope.dashboard.timeline.counters import counter_head
from deepscope.dashboard.timeline.details import details_of
from deepscope.dashboard.timeline.selection import NameIndex, at_line, durations_of, search, selection_of
from deepscope.dashboard.timeline.window import window_of
from deepscope.errors import NoTraceError, TraceError
from deepscope.processes import MessageError, ProcessEndedError, Progress
from deepscope.store.cache import can_keep, load_columns, save_columns
from deepscope.store.files import TraceFile, single_file
from deepscope.store.opening import keep, open_attribution, parsed_within
from deepscope.store.pool import worker
from deepscope.store.requests import ColumnsRequest
from deepscope.trace.kineto.source import likely_json_bytes


class TimelineIndex:
    """Answers questions about a timeline; several threads may ask at once.

    Raises:
        OptionError: (each question) what is asked for is not there, or is no number; the message says what there is.
    """

    def __init__(self, columns: TimelineColumns) -> None:
        self.columns = columns

    def head(self) -> Timeline:
        """What there is to see."""
        columns = self.columns
        work_begin, work_end = work_of(columns)
        return Timeline(
            end_ns=columns.end_ns,
            work_begin_ns=work_begin,
            work_end_ns=work_end,
            begin_epoch_ns=columns.begin_epoch_ns,
            tracks=columns.tracks,
            counters=[counter_head(number, one) for number, one in enumerate(columns.counters)],
            kinds=list(KINDS),
            places=columns.places,
            slices=len(columns.slices),
        )

    def window(self, begin_ns: float, end_ns: float, pixels: int, tracks: Collection[int] | None = None) -> Window:
        """What a stretch of time shows on some tracks (None: all) of a screen so many pixels wide."""
        return window_of(self.columns, begin_ns, end_ns, pixels, tracks)

    def details(self, slice_: int) -> SliceDetails:
        """All that is known of a slice."""
        return details_of(self.columns, slice_)

    def selection(self, begin_ns: float, end_ns: float, tracks: Collection[int] | None = None) -> Selection:
        """The sums of a stretch of time over some tracks (None: all)."""
        return selection_of(self.columns, begin_ns, end_ns, tracks)

    def search(
        self, text: str, *, from_ns: float = 0, limit: int = 100, kinds: Collection[str] | None = None
    ) -> Matches:
        """The slices of some kinds (None: all) whose name holds a text, whatever its case."""
        return search(self.columns, self._names, text, from_ns=from_ns, limit=limit, kinds=kinds)

    def at_line(self, file: str, line: int, *, from_ns: float = 0, limit: int = 100) -> Matches:
        """The slices that belong to a line of code; `file` as recorded."""
        return at_line(self.columns, file, line, from_ns=from_ns, limit=limit)

    def durations(self, name: str, kind: str) -> Durations:
        """How long the slices of a kind are that bear a name."""
        return durations_of(self.columns, self._names, name, kind)

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex(self.columns)


_DEVICE: tuple[SliceKind, ...] = ("kernel", "copy", "collective")
_NO_WORK: tuple[SliceKind, ...] = ("span", "other", "phase", "step")


def work_of(columns: TimelineColumns) -> tuple[int, int]:
    """Begin and end of the steps and the device's work; without steps of all that is no span of the profiler's.

    The whole where there is nothing of the kind.
    """
    if not len(columns.slices):
        return 0, columns.end_ns
    kind = columns.labels.kind[columns.slices.label]
    is_step = kind == KIND_NUMBER["step"]
    chosen = is_step | np.isin(kind, _numbers(_DEVICE)) if is_step.any() else ~np.isin(kind, _numbers(_NO_WORK))
    if not chosen.any():
        return 0, columns.end_ns
    return int(columns.slices.start[chosen].min()), int(columns.slices.end[chosen].max())


def _numbers(kinds: Iterable[SliceKind]) -> list[int]:
    return [KIND_NUMBER[kind] for kind in kinds]


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
    kept = load_columns("timeline", file, TimelineColumns, partial=partial) if cache else None
    if kept is None and cache and likely_json_bytes(file.path, file.size_bytes) >= APART_BYTES and can_keep():
        kept = _made_apart(file, partial=partial, progress=progress)
    if kept is None:
        kept = make_timeline(file, partial=partial, cache=cache, progress=progress)
    elif progress is not None:
        progress(file.size_bytes, file.size_bytes)
    return TimelineIndex(kept)


def make_timeline(
    file: TraceFile, *, partial: bool, cache: bool = True, progress: Progress | None = None
) -> TimelineColumns:
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


def _made_apart(file: TraceFile, *, partial: bool, progress: Progress | None) -> TimelineColumns | None:
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
    return load_columns("timeline", file, TimelineColumns, partial=partial)


def _file_at(path: str) -> TraceFile:
    file = single_file(path)
    if file is None:
        raise NoTraceError(f"{path}: a folder; a timeline is that of one trace")
    return file
