"""How long steps take, recorded and not: what recording really adds to a run, beside what it says that it adds."""

from __future__ import annotations

import statistics
from collections import deque
from time import perf_counter_ns

from deepscope.trace.format.header import StepLengths

__all__ = ["Pace"]

_KEPT = 64


class Pace:
    """The lengths of the newest steps of one recorder, but for the first of the run, which is longer than others."""

    def __init__(self) -> None:
        self._lengths: dict[bool, deque[int]] = {True: deque(maxlen=_KEPT), False: deque(maxlen=_KEPT)}
        self._began = 0
        self._is_recorded = False
        self._steps = 0

    def begin_step(self, *, is_recorded: bool) -> None:
        """A step begins, as soon as the recorder is done."""
        self._is_recorded = is_recorded
        self._began = perf_counter_ns()

    def end_step(self) -> None:
        """It has ended; what the recorder does from here on is not part of it."""
        if self._began and self._steps:
            self._lengths[self._is_recorded].append(perf_counter_ns() - self._began)
        self._steps += 1

    def account(self) -> StepLengths:
        """The medians, where there are any."""
        words = {True: "recorded", False: "other"}
        known = {words[kind]: lengths for kind, lengths in self._lengths.items() if lengths}
        counts = {f"{word}_steps": len(lengths) for word, lengths in known.items()}
        medians = {f"{word}_ns": int(statistics.median(lengths)) for word, lengths in known.items()}
        return StepLengths(**counts, **medians)
