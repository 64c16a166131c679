"""Why the device was idle: every idle stretch of a window goes to one cause, so that no saving is promised twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import pick
from deepscope.analysis.algebra.intervals import Intervals, union
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.findings.waits_by_cause import CausedWaits, WaitCause
from deepscope.analysis.numbers.phases import PHASES, PhaseTimeline
from deepscope.analysis.numbers.recording_cost import recorded_within_ns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.model import Int64

__all__ = ["LAUNCH_GAP_NS", "Gaps", "find_gaps"]

LAUNCH_GAP_NS = 100_000
"""A longer gap is no matter of launching: the CPU did something else."""
TURNAROUND_NS = 3_000
"""What a device itself takes between two kernels that wait for it."""
QUEUED_NS = 20_000
"""Work launched so long before the device fell idle was waiting for something on the device, not for the CPU."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Idle time, all devices added up."""

    loader: list[Intervals]
    """By device: while the training thread was loading data."""
    synced: Int64
    """By line, shape (lines + 1,), the last place for none: after a wait, and no longer than it took. Had the CPU not
    waited, it would have been so far ahead."""
    copied: Int64
    """Likewise after a wait for a copy to the device."""
    launch: Int64
    """By line: short gaps before its kernels, which the CPU launched no earlier; less what recording cost there."""
    rest: list[Intervals]
    """By device: long gaps that have none of these causes."""


def find_gaps(attribution: Attribution, phases: PhaseTimeline, within: Intervals, waits: CausedWaits) -> Gaps:
    """The idle time within a window by cause; `waits` are those of the training thread."""
    lines = len(attribution.scopes.locations)
    is_data = phases.phase == PHASES.index("data")
    data = union(phases.spans.start[is_data], phases.spans.end[is_data])
    synced, copied, launch = np.zeros((3, lines + 1), np.int64)
    gaps = Gaps([], synced, copied, launch, [])
    for device, working in attribution.busy.items():
        free = working.complement(within)
        gaps.loader.append(free.intersection(data))
        pieces = data.complement(free) if len(data.start) else free
        after = _share_with_waits(gaps, lines, pieces, waits)
        _share_with_launches(gaps, attribution, device, pieces, after)
    return gaps


def _share_with_waits(gaps: Gaps, lines: int, pieces: Intervals, waits: CausedWaits) -> Int64:
    """Takes from the front of each piece what a wait that ends in it explains; returns where the rest begins, (k,)."""
    if not len(waits) or not len(pieces.start):
        return pieces.start
    last = np.searchsorted(waits.end, pieces.end, side="right") - 1
    hit = (last >= 0) & (pick(waits.end, last) > pieces.start)
    waited = np.where(hit, pick(waits.end - waits.start, last), 0)
    taken = np.minimum(waited, pieces.end - pieces.start)
    location, is_copy = pick(waits.location, last), pick(waits.cause, last) == WaitCause.COPY_IN
    gaps.copied[:] += by_line(location[hit & is_copy], lines, taken[hit & is_copy])
    gaps.synced[:] += by_line(location[hit & ~is_copy], lines, taken[hit & ~is_copy])
    return np.asarray(pieces.start + taken)


def _share_with_launches(gaps: Gaps, attribution: Attribution, device: int, pieces: Intervals, after: Int64) -> None:
    """Short gaps go to the line that launched what ended them, long ones are left for the line that the CPU was on."""
    work = attribution.work
    lines = len(attribution.scopes.locations)
    short = pieces.end - pieces.start < LAUNCH_GAP_NS
    gaps.rest.append(union(after[~short], pieces.end[~short]))
    rows = np.flatnonzero(work.device == device)
    rows = rows[np.argsort(work.start_ns[rows], kind="stable")]
    found = np.searchsorted(work.start_ns[rows], pieces.end)
    ends_with = rows[np.minimum(found, len(rows) - 1)]
    late = work.launch_ns[ends_with] + QUEUED_NS >= pieces.start
    left = pieces.end - after - recorded_within_ns(attribution, after, pieces.end)
    counted = short & late & (work.start_ns[ends_with] == pieces.end) & (left >= TURNAROUND_NS)
    gaps.launch[:] += by_line(attribution.work_location[ends_with[counted]], lines, left[counted])
