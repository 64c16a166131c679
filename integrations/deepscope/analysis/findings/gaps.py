"""Why the device was idle: every idle stretch of a window goes to one cause, so that no saving is promised twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask, by_line
from deepscope.analysis.findings.waits_by_cause import CausedWaits, WaitCause
from deepscope.analysis.numbers.added_by_recording import Added
from deepscope.analysis.numbers.phases import PhaseTimeline
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.work import Work
from deepscope.records import PHASES
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64

LAUNCH_GAP_NS = 100_000
"""In a longer gap the CPU did something else than launch."""
TURNAROUND_NS = 3_000
"""A device itself takes so long between two kernels."""
QUEUED_NS = 20_000
"""Work that was launched so long before the device fell idle did not wait for the CPU."""


@dataclass(frozen=True, slots=True)
class IdleGaps:
    """Idle time by cause, summed over the devices."""

    loader: list[Intervals]
    """By device: while the training thread was loading data."""
    synced: Int64
    """By line, shape (lines + 1,), the last place for none: after a wait, and no longer than the wait took. Without the
    wait the CPU would have been so far ahead."""
    copied: Int64
    """By line: after a wait for a copy to the device."""
    checked: Int64
    """By line: after a wait of autograd's that looks for NaN."""
    clipped: Int64
    """By line: after a wait for the norm of the gradients, as they are clipped."""
    clip_launch: Int64
    """By line: what is `launch` for other kernels, before those that clip gradients one by one."""
    launch: Int64
    """By line: short gaps before kernels that the CPU launched late."""
    rest: list[Intervals]
    """By device: long gaps without any of these causes."""


def find_gaps(
    work: OwnedWork,
    phases: PhaseTimeline,
    within: Intervals,
    waits: CausedWaits,
    lines: int,
    *,
    added: Added,
    searching: Intervals,
    clipping: Mask,
) -> IdleGaps:
    """The idle time within a window by cause.

    Args:
        work: of the trace.
        phases: of the trace.
        within: the window.
        waits: those of the training thread.
        lines: how many there are.
        added: what recording added, which is nobody's and in none of these.
        searching: when convolutions try out algorithms; what is idle meanwhile is theirs and in none of these.
        clipping: which work clips gradients one by one, shape (w,).
    """
    is_data = phases.phase == PHASES.index("data")
    unrecorded = added.idle.complement(within)
    data = union(phases.spans.start[is_data], phases.spans.end[is_data])
    loader, rest = [], []
    after_wait = np.zeros((max(WaitCause) + 1, lines + 1), np.int64)
    launch, clip_launch = np.zeros((2, lines + 1), np.int64)
    for device, working in work.busy.items():
        free = working.complement(searching.complement(within) if len(searching.start) else within)
        loader.append(free.intersection(data).intersection(unrecorded))
        pieces = data.complement(free) if len(data.start) else free
        taken, line, cause = _explained_by_waits(pieces, waits, added)
        after = pieces.start + taken
        np.add.at(after_wait, (np.maximum(cause, 0), line), unrecorded.overlap_ns(pieces.start, after))
        is_short = pieces.end - pieces.start < LAUNCH_GAP_NS
        ended_by = _launched_late(work, device, pieces)
        left = unrecorded.overlap_ns(after, pieces.end)
        counted = is_short & (ended_by >= 0) & (left >= TURNAROUND_NS)
        clips = counted & np.append(clipping, False)[ended_by]
        clip_launch += by_line(work.location[ended_by[clips]], lines, left[clips])
        counted &= ~clips
        launch += by_line(work.location[ended_by[counted]], lines, left[counted])
        # Long gaps go to the line that the CPU was on.
        rest.append(union(after[~is_short], pieces.end[~is_short]).intersection(unrecorded))
    copied, checked, clipped = after_wait[[WaitCause.COPY_IN, WaitCause.CHECK, WaitCause.CLIPPING]]
    synced = after_wait.sum(axis=0) - copied - checked - clipped
    return IdleGaps(loader, synced, copied, checked, clipped, clip_launch, launch, rest)


def _explained_by_waits(pieces: Intervals, waits: CausedWaits, added: Added) -> tuple[Int64, Int64, Int64]:
    """How much of each piece's front a wait that ends in it explains, and that wait's line and cause; shape (k,).

    The CPU would have waited longer for what recording took it while the device worked.
    """
    last = np.searchsorted(waits.end, pieces.end, side="right") - 1
    hit = (last >= 0) & (pick(waits.end, last) > pieces.start)
    since = np.concatenate((pieces.start[:1], pieces.end[:-1]))
    longer = added.busy.overlap_ns(since, np.maximum(pick(waits.start, last), since))
    waited = np.where(hit, pick(waits.end - waits.start, last) + longer, 0)
    return np.minimum(waited, pieces.end - pieces.start), pick(waits.location, last), pick(waits.cause, last)


def _launched_late(work: Work, device: int, pieces: Intervals) -> Int64:
    """The work that ended each idle piece, if it was launched late, else -1; shape (k,)."""
    rows = np.flatnonzero(work.device == device)
    rows = rows[np.argsort(work.start_ns[rows], kind="stable")]
    found = np.searchsorted(work.start_ns[rows], pieces.end)
    ends_with = rows[np.minimum(found, len(rows) - 1)]
    late = work.launch_ns[ends_with] + QUEUED_NS >= pieces.start
    return np.where(late & (work.start_ns[ends_with] == pieces.end), ends_with, -1)
