"""The streams of the devices."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals, union
from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.gaps_of_streams import gaps, stream_of
from deepscope.records import Stream
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


def stream_table(analysis: Analysis) -> list[Stream]:
    """The streams with work within the extent, by device and number; none where the CPU is the device."""
    work, events = analysis.attribution.work, analysis.attribution.trace.events
    if work.metric != "device":
        return []
    everything = np.flatnonzero(work.counts)
    streams, of_piece = stream_of(events, work, everything)
    stream = np.full(len(work), -1, np.int64)
    stream[everything] = of_piece
    # Parts of one kernel lie in a row behind its largest.
    place = np.full(int(work.piece[-1]) + 1, -1, np.int64)
    place[work.piece[everything]] = of_piece
    of_row = place[work.piece]
    counted = analysis.counted
    kinds = {
        "collective": counted & work.collective,
        "kernel": counted & (work.kind == Kind.KERNEL) & ~work.collective,
        "copy": counted & (work.kind == Kind.MEMCPY),
        "fill": counted & (work.kind == Kind.MEMSET),
    }

    def sums(rows: Mask, values: Int64 | None = None) -> list[int]:
        result = np.zeros(len(streams), np.int64)
        np.add.at(result, of_row[rows], 1 if values is None else values[rows])
        return [int(one) for one in result]

    device_ns = sums(counted, work.duration_ns)
    times = {name: sums(rows, work.duration_ns) for name, rows in kinds.items()}
    counts = {name: sums(rows & work.counts) for name, rows in kinds.items()}
    between = gaps(events, work, counted)
    waits = np.zeros((len(streams), 3), np.int64)
    np.add.at(waits, (stream[between.row], between.cause), between.gap_ns)
    window = analysis.window
    busy = [
        union(work.start_ns[rows], work.end_ns[rows]).intersection(window)
        for rows in (everything[of_piece == i] for i in range(len(streams)))
    ]
    return [
        Stream(
            device=device,
            stream=number,
            device_ns=device_ns[i],
            kernel_ns=times["kernel"][i],
            copy_ns=times["copy"][i],
            fill_ns=times["fill"][i],
            collective_ns=times["collective"][i],
            kernels=counts["kernel"][i],
            copies=counts["copy"][i],
            fills=counts["fill"][i],
            collectives=counts["collective"][i],
            busy_ns=busy[i].total_ns,
            overlapped_ns=_overlapped(busy, [j for j, other in enumerate(streams) if other[0] == device and j != i], i),
            idle_ns=window.total_ns - busy[i].total_ns,
            host_wait_ns=int(waits[i, 0]),
            kernel_wait_ns=int(waits[i, 1]),
            other_wait_ns=int(waits[i, 2]),
        )
        for i, (device, number) in enumerate(streams)
        if device_ns[i] or busy[i].total_ns or counts["kernel"][i]
    ]


def _overlapped(busy: list[Intervals], others: list[int], one: int) -> int:
    """How much of a stream's busy time some others share."""
    if not others:
        return 0
    both = union(np.concatenate([busy[i].start for i in others]), np.concatenate([busy[i].end for i in others]))
    return both.intersection(busy[one]).total_ns
