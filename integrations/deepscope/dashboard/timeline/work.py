"""Which stretch of a timeline is the work: where a reader wants to look first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from deepscope.dashboard.timeline.answers import SliceKind
from deepscope.dashboard.timeline.columns import KIND_NUMBER, Columns

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
