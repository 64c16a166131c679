"""The same call found on all ranks of its process group: by torch's numbers, else by its place among the calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.ranks.alignment import Aligner, CallSequence
from deepscope.ranks.calls import Calls, CallStream
from deepscope.ranks.medians import distinct_pairs
from deepscope.records.ranges import listed

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_ORDINALS = 1 << 20
"""Calls with one number (torch numbers a batch as one call) are told apart by their order."""


@dataclass(frozen=True, slots=True)
class MatchedCalls:
    """Calls of groups on several ranks; arrays of `calls` have shape (c,), the others (m,), one row a matched call."""

    calls: Calls
    match: Int64
    """Of each call the matched call that it is part of; -1 for none."""
    stream: Int64
    """Index into `Calls.streams`."""
    row: Int64
    """Index into `Calls.rows`: that of the largest message."""
    ranks: Int64
    """How many ranks take part."""
    is_complete: Mask
    """Whether these are all ranks of the group."""
    by_sequence: Mask
    """Whether torch's numbers say that it is the same call; else the order does."""
    time_ns: Int64
    """Over the ranks."""
    size_bytes: Int64
    """Of the largest message."""

    def __len__(self) -> int:
        return len(self.stream)


def match(calls: Calls) -> MatchedCalls:
    """Matches the calls of process groups.

    Of a group's calls those count that most of its ranks were seen in. A call that cannot be told from another one is
    left alone.
    """
    place = np.full(len(calls.rank), -1, np.int64)
    numbered = np.zeros(len(calls.streams), np.bool_)
    order = np.argsort(calls.stream, kind="stable")
    bounds = np.searchsorted(calls.stream[order], np.arange(len(calls.streams) + 1))
    for number, stream in enumerate(calls.streams):
        chosen = order[bounds[number] : bounds[number + 1]]
        chosen = chosen[np.isin(calls.rank[chosen], np.array(listed(stream.ranks)))]
        told = chosen[~calls.is_untold[chosen]]
        numbered[number] = bool(len(told)) and bool((calls.sequence[told] >= 0).all())
        if numbered[number]:
            place[told] = _by_number(calls, told)
        else:
            _by_order(calls, stream, told, chosen, place)
    return _matches(calls, place, numbered)


def _by_order(calls: Calls, stream: CallStream, told: Int64, every: Int64, place: Int64) -> None:
    """Places among the calls that are told to be collectives, or among all where that lays more ranks side by side."""
    found, aligned = _side_by_side(calls, told)
    chosen = told
    if len(every) > len(told) and aligned < len(np.unique(calls.rank[every])):
        with_others, more = _side_by_side(calls, every)
        if more > aligned:
            found, aligned, chosen = with_others, more, every
    if not stream.is_assumed or aligned == stream.size:
        place[chosen] = found


def _by_number(calls: Calls, chosen: Int64) -> Int64:
    """Places by torch's numbers; shape of `chosen`, which stand rank by rank."""
    order = np.lexsort((chosen, calls.sequence[chosen], calls.rank[chosen]))
    rank, number = calls.rank[chosen][order], calls.sequence[chosen][order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (rank[1:] != rank[:-1]) | (number[1:] != number[:-1])
    firsts = np.flatnonzero(begins)
    ordinal = np.arange(len(order)) - firsts[np.cumsum(begins) - 1]
    result = np.full(len(order), -1, np.int64)
    result[order] = np.where((number < 1 << 40) & (ordinal < _ORDINALS), number * _ORDINALS + ordinal, -1)
    return result


def _side_by_side(calls: Calls, chosen: Int64) -> tuple[Int64, int]:
    """Places beside those of the rank with most calls, shape of `chosen`, which stand rank by rank; and how many ranks
    have any."""
    ranks, begins = np.unique(calls.rank[chosen], return_index=True)
    ends = np.append(begins[1:], len(chosen))
    result = np.full(len(chosen), -1, np.int64)
    if not len(ranks):
        return result, 0
    longest = int(np.argmax(ends - begins))
    reference = Aligner(_sequence(calls, chosen[begins[longest] : ends[longest]]))
    aligned = 0
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        if begin == begins[longest]:
            result[begin:end] = np.arange(end - begin)
            aligned += 1
            continue
        other = _sequence(calls, chosen[begin:end])
        found = reference.align(other)
        if found is not None:
            result[begin:end][found.theirs] = np.arange(found.begin, found.end)
            aligned += 1
        elif (by_steps := reference.align_steps(other)) is not None:
            ours, theirs = by_steps
            result[begin:end][theirs] = ours
            aligned += 1
    return result, aligned


def _sequence(calls: Calls, rows: Int64) -> CallSequence:
    host = calls.hosts.get(int(calls.rank[rows[0]]), "") if len(rows) else ""
    return CallSequence(calls.token[rows], calls.step[rows], calls.start_ns[rows], calls.end_ns[rows], host)


def _matches(calls: Calls, place: Int64, numbered: Mask) -> MatchedCalls:
    rows = np.flatnonzero(place >= 0)
    stream, _, match = distinct_pairs(calls.stream[rows], place[rows])
    count = len(stream)
    ranks = np.bincount(match, minlength=count)
    same = _agrees(calls.token[rows], match, count)
    same &= np.bincount(match[~calls.is_untold[rows]], minlength=count) > 0
    most = np.zeros(len(calls.streams), np.int64)
    np.maximum.at(most, stream[same], ranks[same])
    size = np.array([one.size for one in calls.streams], np.int64)[stream]
    kept = same & (ranks == most[stream]) & ((ranks > 1) | (size == 1))
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    result = np.full(len(calls.rank), -1, np.int64)
    result[rows] = number[match]
    total, largest = np.zeros(len(kept), np.int64), np.zeros(len(kept), np.int64)
    np.add.at(total, match, calls.time_ns[rows])
    np.maximum.at(largest, match, calls.size_bytes[rows])
    return MatchedCalls(
        calls=calls,
        match=result,
        stream=stream[kept],
        row=_largest_rows(calls, result, int(kept.sum())),
        ranks=ranks[kept],
        is_complete=(ranks == size)[kept],
        by_sequence=numbered[stream[kept]],
        time_ns=total[kept],
        size_bytes=largest[kept],
    )


def _agrees(token: Int64, match: Int64, count: int) -> Mask:
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1, np.int64)
    np.minimum.at(low, match, token)
    np.maximum.at(high, match, token)
    return np.asarray(low == high)


def _largest_rows(calls: Calls, match: Int64, count: int) -> Int64:
    """Of each matched call the row of its largest message, the first rank's of several; none without a kind."""
    row = np.zeros(count, np.int64)
    matched = np.flatnonzero(match >= 0)
    ordered = matched[np.lexsort((-matched, calls.size_bytes[matched], ~calls.is_untold[matched]))]
    row[match[ordered]] = calls.row[ordered]
    return row
