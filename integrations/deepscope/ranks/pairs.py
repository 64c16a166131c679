"""Point-to-point messages by pair of ranks: sends and receives of the same message found on both sides, by order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from deepscope.ranks.alignment import Aligner, Sequence
from deepscope.ranks.calls import Calls
from deepscope.ranks.results import PairRow

Int64 = npt.NDArray[np.int64]
Aligned = Callable[[Int64, Int64], Int64]


def pair_rows(calls: Calls, aligned_ns: Aligned) -> list[PairRow]:
    """A row for each pair with messages from the one to the other, the largest time first.

    `aligned_ns` has times of ranks on a clock that they have in common, -1 where there is none.
    """
    kinds = np.array([row.kind for row in calls.rows])[calls.row] if len(calls.row) else np.zeros(0, "U1")
    known = calls.peer >= 0
    sends = _by_pair(calls, np.flatnonzero(known & (kinds == "send")))
    received_by = _by_pair(calls, np.flatnonzero(known & (kinds == "recv")))
    receives = {(source, target, group): rows for (target, source, group), rows in received_by.items()}
    found: dict[tuple[int, int], PairRow] = {}
    recorded_bytes: dict[tuple[int, int], int] = defaultdict(int)
    matched_bytes: dict[tuple[int, int], int] = defaultdict(int)
    for source, target, group in sorted({*sends, *receives}):
        sent = sends.get((source, target, group), _NONE)
        received = receives.get((source, target, group), _NONE)
        row = found.setdefault((source, target), PairRow(source=source, target=target))
        recorded = received if len(received) else sent
        row.messages += max(len(sent), len(received))
        row.bytes += int(max(calls.size_bytes[sent].sum(), calls.size_bytes[received].sum()))
        row.time_ns += int(calls.time_ns[recorded].sum())
        recorded_bytes[source, target] += int(calls.size_bytes[recorded].sum())
        ours, theirs = _same(calls, sent, received, aligned_ns)
        if len(ours):
            shorter = np.minimum(calls.time_ns[ours], calls.time_ns[theirs])
            row.transfer_ns = (row.transfer_ns or 0) + int(shorter.sum())
            matched_bytes[source, target] += int(calls.size_bytes[theirs].sum())
    for pair, row in found.items():
        size, time_ns = (
            (matched_bytes[pair], row.transfer_ns) if row.transfer_ns else (recorded_bytes[pair], row.time_ns)
        )
        row.bytes_per_s = round(size / time_ns * 10**9) if size and time_ns else None
    return sorted(found.values(), key=lambda row: (-row.time_ns, row.source, row.target))


_NONE = np.zeros(0, np.int64)


def _by_pair(calls: Calls, rows: Int64) -> dict[tuple[int, int, str], Int64]:
    """Calls of each rank with each other one in each group, in order."""
    found: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    groups = [row.group for row in calls.rows]
    for row, rank, peer, key in zip(
        rows.tolist(), calls.rank[rows].tolist(), calls.peer[rows].tolist(), calls.row[rows].tolist(), strict=True
    ):
        found[rank, peer, groups[key]].append(row)
    return {pair: np.array(own, np.int64) for pair, own in found.items()}


def _same(calls: Calls, sent: Int64, received: Int64, aligned_ns: Aligned) -> tuple[Int64, Int64]:
    """The sends and the receives of the same messages."""
    if not len(sent) or not len(received):
        return _NONE, _NONE
    first, second = _sequence(calls, sent, aligned_ns), _sequence(calls, received, aligned_ns)
    found = Aligner(first).align(second)
    return (_NONE, _NONE) if found is None else (sent[found.ours], received[found.theirs])


def _sequence(calls: Calls, rows: Int64, aligned_ns: Aligned) -> Sequence:
    start, end = (aligned_ns(calls.rank[rows], times[rows]) for times in (calls.start_ns, calls.end_ns))
    known = bool((start >= 0).all()) and bool((end >= 0).all())
    return Sequence(
        token=calls.size_bytes[rows],
        step=calls.step[rows],
        start_ns=start if known else calls.start_ns[rows],
        end_ns=end if known else calls.end_ns[rows],
    )
