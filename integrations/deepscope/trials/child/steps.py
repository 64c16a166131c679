"""The clock of a run: when each step of the program was done, and when the run has made enough."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch

from deepscope.capture.process_hooks import optimizer_steps

FEWEST_TIMED = 5
"""A run that ends by the clock has timed so many steps at least."""
_WAITS = 10
"""On a device, so often in a run the host waits for it: each wait takes some of the overlap of host and device."""


class StepClock:
    """Counts the steps of the optimizer that steps first, else backward passes; calls `on_end` behind the last one.

    Without a device each step has a mark. With one, whose work goes on behind the step, the host waits for it at the
    end of the warm-up and some ten times later; only those steps have marks.
    """

    def __init__(self, *, warmup: int, steps: int, seconds: float | None, on_end: Callable[[], None]) -> None:
        self._warmup, self._steps, self._seconds = warmup, steps, seconds
        self._on_end = on_end
        self._leader: Any = None
        self._optimizers: dict[int, Any] = {}
        self._each: list[Callable[[Any], None]] = []
        self._warming: list[Callable[[], object]] = []
        self.count = 0
        self.marks: list[tuple[int, int]] = []

    def start(self) -> None:
        """Listen to optimizers."""
        optimizer_steps.listen_to_steps(self._stepped)

    def while_warming(self, action: Callable[[], object]) -> None:
        """Call it behind each step of the warm-up."""
        self._warming.append(action)

    def at_each(self, action: Callable[[Any], None]) -> None:
        """Call it with the optimizer behind each step of any."""
        self._each.append(action)

    @property
    def optimizers(self) -> list[Any]:
        """Those that have stepped, in order."""
        return list(self._optimizers.values())

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._leader is None:
            self._leader = optimizer
        if self.count < self._warmup and not isinstance(optimizer, optimizer_steps.BackwardPasses):
            self._optimizers.setdefault(id(optimizer), optimizer)
        for action in self._each:
            action(optimizer)
        if optimizer is not self._leader:
            return
        self.count += 1
        if self.count <= self._warmup:
            for warm in self._warming:
                warm()
        timed = self.count - self._warmup
        if torch.cuda.is_initialized():
            apart = max(1, self._steps // _WAITS)
            if timed < 0 or (timed % apart and timed < self._steps):
                return
            torch.cuda.synchronize()
        self.marks.append((self.count, perf_counter_ns()))
        if timed >= self._steps or (self._seconds is not None and self._is_over(timed)):
            self._on_end()

    def _is_over(self, timed: int) -> bool:
        first = next((mark for mark in self.marks if mark[0] >= self._warmup), None)
        assert self._seconds is not None
        return timed >= FEWEST_TIMED and first is not None and self.marks[-1][1] - first[1] > self._seconds * 1e9
