"""Two ranks' sequences of the same calls laid beside each other, though their windows need not begin together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

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


def _roughly_ns(first: CallSequence, second: CallSequence, among: list[Alignment]) -> Float64:
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
