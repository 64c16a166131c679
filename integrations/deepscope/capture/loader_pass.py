"""One pass over a data loader, and what it is part of: training, an evaluation, or neither."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Any

from deepscope.capture.run_timer import RunTimer


def length_of(loader: Any) -> int | None:
    """How many batches a loader says that it has; None where it does not say."""
    try:
        return len(loader)
    except Exception:  # noqa: BLE001 - TypeError of what has no length; a loader of its own kind raises what it likes
        return None


class PassKind(Enum):
    """What a pass is part of."""

    UNDECIDED = auto()
    """No step has ended among its batches so far; until then it counts as training."""
    TRAINING = auto()
    EVALUATION = auto()
    OTHER = auto()
    """It is over, and no step was made with it."""


class LoaderPass:
    """From the making of an iterator to its end. Neither the iterator nor its loader is kept alive."""

    def __init__(self, timer: RunTimer, loader: Any = None) -> None:
        self.mark = TimeMark(timer)
        """Where it began."""
        self.kind = PassKind.UNDECIDED
        self.batches = 0
        self.is_over = False
        self.key = 0
        """The iterator's number."""
        self._iterator: weakref.ref[Any] | None = None
        self._loader = None if loader is None else weakref.ref(loader)  # it may go before its iterator

    @property
    def may_train(self) -> bool:
        """Whether it is training, as far as is known."""
        return self.kind is PassKind.TRAINING or self.kind is PassKind.UNDECIDED

    @property
    def length(self) -> int | None:
        """How many batches its loader says that it has; None where it does not say."""
        return None if self._loader is None else length_of(self._loader())

    def goes_over(self, loader: Any) -> bool:
        """Whether it goes over this one."""
        return self._loader is not None and self._loader() is loader

    def follow(self, iterator: Any, died: Callable[[LoaderPass], None]) -> None:
        """Have `died` called as the iterator goes: a loop that is left by `break` drops it, and tells nobody else."""
        self.key = id(iterator)
        with suppress(TypeError):  # a class of the user's with slots
            self._iterator = weakref.ref(iterator, lambda _: died(self))


class TimeMark:
    """A moment of the run: what passed since then can be moved to another part."""

    def __init__(self, timer: RunTimer) -> None:
        self._timer = timer
        self.move_to_now()

    def move_to_now(self) -> None:
        """The last turn is the moment now."""
        so_far_ns = self._timer.so_far_ns
        self._data_ns, self._steps_ns = so_far_ns("data"), so_far_ns("steps")
        self._evaluation_ns = so_far_ns("evaluation")

    def later(self, other: TimeMark) -> TimeMark:
        """The later one of two."""
        return self if self._data_ns + self._steps_ns >= other._data_ns + other._steps_ns else other

    def since(self, timer: RunTimer) -> tuple[int, int]:
        """The wait for data and the time of steps since then; what was moved away is no part of them."""
        data_ns, steps_ns = timer.so_far_ns("data") - self._data_ns, timer.so_far_ns("steps") - self._steps_ns
        return max(data_ns, 0), max(steps_ns, 0)

    @property
    def evaluation_since_ns(self) -> int:
        """The time of evaluations since then."""
        return max(self._timer.so_far_ns("evaluation") - self._evaluation_ns, 0)
