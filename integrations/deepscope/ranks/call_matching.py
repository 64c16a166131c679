"""The same call found on all ranks of its process group: by torch's numbers, else by its place among the calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.selection import Floats, Mask
from deepscope.quantities import listed
from deepscope.ranks.collective_calls import Calls, CallStream, distinct_pairs
from deepscope.trace.model import Int64

_CLEARER = 10
"""A shift is told by times if the next one leaves the ends so many times further apart."""
_FEWEST = 4
"""Calls side by side whose ends tell anything."""
_LOOKED_AT = 64
"""Calls of each shift whose ends are looked at; …"""
_MOST_SHIFTS = 32
"""… and so many of the shifts that fit best by these, of which all are."""
_WHOLE = 0.9
"""Of the calls side by side so many agree without a break: at a window's edge the order of launches may be unknown."""
_ALIKE = 0.8
"""Windows that nothing is told of but their calls are taken to have at least so many of the longer one's in common."""


@dataclass(frozen=True, slots=True)
class CallSequence:
    """The calls of one rank in one group, in order; arrays of shape (c,)."""

    token: Int64
    step: Int64
    start_ns: Int64
    end_ns: Int64
    host: str = ""

    def __len__(self) -> int:
        return len(self.token)


class Alignment(NamedTuple):
    """Calls `begin` to `end` of a reference stand beside those of the other sequence whose place is `shift` less."""

    shift: int
    begin: int
    end: int

    @property
    def ours(self) -> slice:
        """Places in the reference."""
        return slice(self.begin, self.end)

    @property
    def theirs(self) -> slice:
        """Places in the other sequence."""
        return slice(self.begin - self.shift, self.end - self.shift)


class Aligner:
    """Lays sequences beside a reference. Many ranks have the same calls in the same steps: each such pattern is looked
    at once."""

    def __init__(self, reference: CallSequence) -> None:
        self._reference = reference
        self._agreeing: dict[bytes, list[Alignment]] = {}
        self._by_steps: dict[tuple[bytes, bytes], tuple[list[Alignment], bool]] = {}

    def align(self, other: CallSequence) -> Alignment | None:
        """The calls of both that are the same; None where that is not told.

        All calls that stand side by side agree, in their steps' numbers, too. Steps with as many calls on both are the
        same. Among several shifts the ends of the calls decide (at the right one they are as far from each other on
        both ranks), else a common host's clock. Where nothing does, windows of as many calls are taken to be the same.
        """
        first = self._reference
        pattern = other.token.tobytes()
        if pattern not in self._agreeing:
            self._agreeing[pattern] = _agreeing(first.token, other.token)
        steps = pattern, other.step.tobytes()
        if steps not in self._by_steps:
            self._by_steps[steps] = _of_same_steps(first, other, self._agreeing[pattern])
        found, are_told = self._by_steps[steps]
        if are_told and found:
            return found[0]
        told = _by_ends(first, other, found) or _by_host(first, other, found)
        if told is not None:
            return told
        alike = [one for one in found if one.end - one.begin >= _ALIKE * max(len(first), len(other))]
        if len(alike) > 1 and len(first) == len(other):
            alike = [one for one in alike if one.shift == 0]
        return alike[0] if len(alike) == 1 else None

    def align_steps(self, other: CallSequence) -> tuple[Int64, Int64] | None:
        """The same calls of both (places here and there), step by step; None where a step that both have differs.

        The threads of a backend on the CPU take calls one after another and begin them side by side: which begins
        first may differ over the ranks. Within a step calls that agree stand in their order.
        """
        first = self._reference
        shared = np.intersect1d(first.step[first.step >= 0], other.step[other.step >= 0])
        ours, theirs = _by_token(first, shared), _by_token(other, shared)
        if not len(ours) or len(ours) != len(theirs):
            return None
        same = (first.step[ours] == other.step[theirs]) & (first.token[ours] == other.token[theirs])
        return (ours, theirs) if same.all() else None


def _by_token(one: CallSequence, steps: Int64) -> Int64:
    """The places of the calls of these steps, by step, token and order."""
    places = np.flatnonzero(np.isin(one.step, steps))
    return places[np.lexsort((places, one.token[places], one.step[places]))]


def _agreeing(first: Int64, second: Int64) -> list[Alignment]:
    """Those in which nearly all calls that stand side by side agree."""
    found = []
    for shift in range(1 - len(second), len(first)):
        begin, end = max(shift, 0), min(len(first), len(second) + shift)
        differs = np.flatnonzero(first[begin:end] != second[begin - shift : end - shift])
        edges = np.concatenate(([-1], differs, [end - begin]))
        lengths = np.diff(edges) - 1
        longest = int(np.argmax(lengths))
        length = int(lengths[longest])
        if length >= _WHOLE * (end - begin):
            start = begin + int(edges[longest]) + 1
            found.append(Alignment(shift, start, start + length))
    return found


def _of_same_steps(first: CallSequence, second: CallSequence, among: list[Alignment]) -> tuple[list[Alignment], bool]:
    """Those in which all calls stand beside calls of the same step, and whether these tell the only one.

    They do where both have as many calls in a step.
    """
    if not (first.step >= 0).any() or not (second.step >= 0).any():
        return among, False
    found = [
        one
        for one in among
        if (first.step[one.ours] >= 0).any() and np.array_equal(first.step[one.ours], second.step[one.theirs])
    ]
    shift = _of_equal_steps(first.step, second.step)
    if shift is None:
        return found, False
    return [one for one in found if one.shift == shift], True


def _of_equal_steps(first: Int64, second: Int64) -> int | None:
    """The shift that brings steps with as many calls on both side by side; None where there are none, or several."""
    ours, our_place, our_count = np.unique(first, return_index=True, return_counts=True)
    theirs, their_place, their_count = np.unique(second, return_index=True, return_counts=True)
    shared, one, other = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    equal = (shared >= 0) & (our_count[one] == their_count[other])
    shifts = np.unique((our_place[one] - their_place[other])[equal])
    return int(shifts[0]) if len(shifts) == 1 else None


def _by_ends(first: CallSequence, second: CallSequence, among: list[Alignment]) -> Alignment | None:
    """The one that leaves the ends by far the nearest to each other.

    Steps are much alike, so that a window laid a step off fits well, too. Shifts that bring half of the shorter window
    side by side are told from each other. Where one with a quarter fits better, the windows may share no more.
    """
    length = np.array([one.end - one.begin for one in among])
    shorter = min(len(first), len(second))
    tried = np.flatnonzero(length >= max(shorter / 4, _FEWEST))
    if len(tried) < 2:
        return None
    roughly = _roughly_ns(first, second, [among[place] for place in tried])
    wide = length[tried] > shorter / 2
    best = [among[place] for place in tried[wide][np.argsort(roughly[wide], kind="stable")][:_MOST_SHIFTS]]
    left = sorted((_residual_ns(first, second, one), one) for one in best)
    rivals = np.array([residual for residual, _ in left[1:]]) if len(left) > 1 else roughly[~wide]
    if not left or not left[0][0] * _CLEARER < rivals.min():
        return None
    return left[0][1] if wide.all() or left[0][0] <= roughly[~wide].min() else None


def _roughly_ns(first: CallSequence, second: CallSequence, among: list[Alignment]) -> Floats:
    """The same as `_residual_ns` of each, by some of its calls."""
    shift, begin, end = np.array(among, np.int64).T[:, :, None]
    place = begin + np.arange(_LOOKED_AT) * (end - begin) // _LOOKED_AT
    apart = first.end_ns[place] - second.end_ns[place - shift]
    middle = np.sort(apart, axis=1)[:, _LOOKED_AT // 2, None]
    return np.asarray(np.abs(apart - middle).mean(axis=1))


def _residual_ns(first: CallSequence, second: CallSequence, one: Alignment) -> float:
    """How far ends lie apart beside the median of their differences."""
    apart = np.sort(first.end_ns[one.ours] - second.end_ns[one.theirs])
    return float(np.abs(apart - apart[len(apart) // 2]).mean())


def _by_host(first: CallSequence, second: CallSequence, among: list[Alignment]) -> Alignment | None:
    """On one host, the only one in which no call has ended on one rank before it began on the other."""
    if not first.host or first.host != second.host:
        return None
    found = []
    for one in among:
        late = np.maximum(first.start_ns[one.ours], second.start_ns[one.theirs])
        if (late <= np.minimum(first.end_ns[one.ours], second.end_ns[one.theirs])).all():
            found.append(one)
    return found[0] if len(found) == 1 else None


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
