"""A window by time: it opens so many seconds after the first step, and closes so many seconds later, between two steps.

Each rank has a clock of its own, and their first steps do not end at the same moment. So the first rank whose time has
come names a step close ahead, in the process group's key-value store, and all of them take that one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from deepscope.capture import torch_compat
from deepscope.capture.actions import Action

_SKEW_SECONDS = 0.2
"""By so much the ranks' clocks may differ; the step that they agree on lies at least so far ahead."""

_made = 0


class TimeWindow:
    """Answers for one step after the other, as each begins; torch's own warm-up takes the steps before the window.

    `agree(key, step)` is the step that the first rank to ask has named under a key.
    """

    def __init__(
        self,
        after_seconds: float,
        seconds: float,
        warmup: int = 1,
        *,
        clock: Callable[[], float] = time.monotonic,
        agree: Callable[[str, int], int] | None = None,
    ) -> None:
        self.is_over = False
        self._after_seconds = after_seconds
        self._seconds = seconds
        self._warmup = warmup
        self._clock = clock
        self._agree = _agreed if agree is None else agree
        self._number: int | None = None
        self._began: float | None = None
        """When the first step ended."""
        self._prepare: int | None = None
        """The first step of torch's warm-up, once it is agreed on."""
        self._opened: float | None = None
        self._end: int | None = None
        """The first step that is not recorded, once it is agreed on."""

    def action(self, step: int) -> Action:
        """What becomes of the step that begins now."""
        now = self._clock()
        if step == 0 or self.is_over:
            return Action.PASS
        if self._began is None:
            self._began = now
        if self._prepare is None and now - self._began >= self._after_seconds:
            self._prepare = self._ahead("begin", step, now)
        if self._prepare is None or step < self._prepare:
            return Action.PASS
        if self._opened is None and step < self._prepare + self._warmup:
            return Action.WARM_UP
        if self._opened is None:
            self._opened = now
        if self._end is None and now - self._opened >= self._seconds:
            self._end = self._ahead("end", step, now)
        self.is_over = self._end is not None and step >= self._end
        return Action.PASS if self.is_over else Action.RECORD

    def _ahead(self, what: str, step: int, now: float) -> int:
        """The agreed step; this one where no other rank is there."""
        if self._number is None:
            self._number = _next_number()
        assert self._began is not None
        length = (now - self._began) / max(step - 1, 1)
        margin = 1 if length >= _SKEW_SECONDS or not length else math.ceil(_SKEW_SECONDS / length)
        return max(step, self._agree(f"deepscope/time/{self._number}/{what}", step + margin))


def _next_number() -> int:
    """The n-th window by time of this process, which is the n-th of the other ranks, too."""
    global _made
    _made += 1
    return _made


def _agreed(key: str, step: int) -> int:
    """Alone, the step itself, without the margin for others."""
    if not torch_compat.has_other_ranks():
        return 0
    words = torch_compat.agreed_value(key, str(step))
    return int(words) if words is not None and words.isdecimal() else step
