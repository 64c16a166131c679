"""The timeline of one trace, ready for questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

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
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, Columns
from deepscope.dashboard.timeline.counters import counter_head
from deepscope.dashboard.timeline.details import details_of
from deepscope.dashboard.timeline.search import NameIndex, at_line, durations_of, search
from deepscope.dashboard.timeline.selection import selection_of
from deepscope.dashboard.timeline.window import window_of


class TimelineIndex:
    """Answers questions about a timeline; several threads may ask at once.

    Raises:
        OptionError: (each question) what is asked for is not there, or is no number; the message says what there is.
    """

    def __init__(self, columns: Columns) -> None:
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


def work_of(columns: Columns) -> tuple[int, int]:
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
