"""Collectives over the ranks: how far apart they come to a call, how long it takes once all are there, who waits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deepscope.analysis.numbers.collective_calls import bus_factor
from deepscope.ranks.arrivals import Arrivals
from deepscope.ranks.calls import MESSAGES, RowKey, key_of
from deepscope.ranks.matching import MatchedCalls
from deepscope.ranks.medians import distinct_pairs
from deepscope.ranks.results import CollectiveRow, RankRow
from deepscope.ranks.summary import RankSummary

Int64 = npt.NDArray[np.int64]


def collective_rows(summaries: Sequence[RankSummary], matches: MatchedCalls, arrivals: Arrivals) -> list[CollectiveRow]:
    """A row for each kind, group, type and size, the largest time first; point-to-point messages left out."""
    keys = matches.calls.rows
    row, calls, time, size = _by_rank(summaries, matches)
    order = np.argsort(matches.row, kind="stable")
    bounds = np.searchsorted(matches.row[order], np.arange(len(keys) + 1))
    found = []
    for number, key in enumerate(keys):
        here = np.flatnonzero((row == number) & (calls > 0))
        if not len(here) or key.kind in MESSAGES:
            continue
        result = CollectiveRow(
            kind=key.kind,
            library=key.library,
            group=key.group,
            group_ranks=key.ranks,
            dtype=key.dtype,
            size_class_bytes=key.size_class_bytes,
            on_device=key.on_device,
            ranks=len(here),
            calls=int(calls[here].max()),
            bytes=int(size[here].max()),
            time_ns=int(time[here].sum()),
        )
        _add_matched(result, key, matches, arrivals, order[bounds[number] : bounds[number + 1]])
        found.append(result)
    return sorted(found, key=lambda one: -one.time_ns)


def _by_rank(summaries: Sequence[RankSummary], matches: MatchedCalls) -> tuple[Int64, Int64, Int64, Int64]:
    """By row and rank: the row, calls, time, bytes. A matched call stands in the row of its largest message."""
    calls, keys = matches.calls, {key: number for number, key in enumerate(matches.calls.rows)}
    table = np.array(
        [
            (keys[key_of(row)], one.rank, row.calls, row.time_ns, row.bytes)
            for one in summaries
            for row in one.collectives
        ],
        np.int64,
    ).reshape(-1, 5)
    moved = np.flatnonzero(matches.match >= 0)
    moved = moved[calls.row[moved] != matches.row[matches.match[moved]]]
    ones = np.ones(len(moved), np.int64)
    what = np.stack((calls.rank[moved], ones, calls.time_ns[moved], calls.size_bytes[moved]), axis=1)
    taken, given = what * (1, -1, -1, -1), what
    table = np.concatenate((
        table,
        np.column_stack((calls.row[moved], taken)),
        np.column_stack((matches.row[matches.match[moved]], given)),
    ))  # fmt: skip
    row, _, place = distinct_pairs(table[:, 0], table[:, 1])
    sums = np.zeros((len(row), 3), np.int64)
    np.add.at(sums, place, table[:, 2:])
    return row, sums[:, 0], sums[:, 1], sums[:, 2]


def _add_matched(row: CollectiveRow, key: RowKey, matches: MatchedCalls, arrivals: Arrivals, own: Int64) -> None:
    """What the matched calls of a row tell."""
    row.matched = len(own)
    if not len(own):
        return
    row.by_sequence = bool(matches.by_sequence[own].all())
    spread = arrivals.spread_ns[own]
    if (spread >= 0).all():
        row.spread_ns, row.max_spread_ns = int(spread.mean()), int(spread.max())
        ranks, counts = np.unique(arrivals.last_rank[own], return_counts=True)
        counts[ranks < 0] = 0
        most = int(np.argmax(counts))
        if counts[most]:
            row.last_rank, row.last_calls = int(ranks[most]), int(counts[most])
    if not arrivals.waits_known[own].all():
        return
    row.wait_ns = int(matches.time_ns[own].sum() - (arrivals.shortest_ns[own] * matches.ranks[own]).sum())
    if not matches.is_complete[own].all():
        return
    row.transfer_ns = int(arrivals.shortest_ns[own].sum())
    factor = bus_factor(key.kind, int(matches.ranks[own[0]]))
    size = int(matches.size_bytes[own].sum())
    if row.transfer_ns and factor and size:
        row.bus_bytes_per_s = round(size * factor * 10**9 / row.transfer_ns)


def fill_waits(
    rows: Sequence[RankRow], summaries: Sequence[RankSummary], matches: MatchedCalls, arrivals: Arrivals
) -> None:
    """Of each rank what it waits for others, and how often it is the last one; nothing where no call is matched.

    The calls that are kept of a rank may be those of its first steps alone: the others are taken to wait as long.
    """
    calls = matches.calls
    all_calls = {one.rank: sum(row.calls for row in one.collectives) for one in summaries}
    is_recorded = np.zeros(len(calls.rank), np.bool_)
    matched = matches.match >= 0
    is_recorded[matched] = arrivals.waits_known[matches.match[matched]]
    for row in rows:
        own = calls.by_rank.get(row.rank, slice(0, 0))
        row.matched = int(matched[own].sum())
        if is_recorded[own].any():
            kept = own.stop - own.start
            waited_ns = int(arrivals.waited_ns[own].sum()) * max(all_calls[row.rank], kept) // kept
            row.waited_ns = waited_ns // max(row.steps, 1)
            row.last = int((arrivals.last_rank == row.rank).sum())
