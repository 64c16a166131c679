"""How long steps take, recorded ones and plain ones: plain are those outside windows and warm-ups.

And the wait of a trace for what steps behind its window tell.
"""

from __future__ import annotations

import statistics
import threading
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from time import monotonic, perf_counter_ns, thread_time_ns

from deepscope.trace.format.header import Spread, UnrecordedStepTimes

FEWEST = 5
"""With fewer plain steps nothing is said of them."""
LONGEST_S = 20.0
"""A trace is not written later than that for the sake of steps behind its window."""
PATIENCE_S, PATIENCE_STEPS = 2.0, 4
"""Where no step has ended for that long, and for the time of so many recorded ones, none is expected any more."""
_KEPT = 64
_EVERY_S = 0.05


class AwaitedSteps:
    """What the writing of a trace waits for: something that steps behind its window tell.

    Made on the thread that makes the steps; `wait` is for the one that writes the trace.
    """

    def __init__(self) -> None:
        self._training = threading.current_thread()
        self._threads = {self._training, threading.main_thread()}  # the interpreter ends after the main one
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any longer."""
        return self._over.is_set()

    @property
    def is_training_thread(self) -> bool:
        """Whether the caller makes the steps itself; it never waits for them."""
        return threading.current_thread() is self._training

    def end(self) -> None:
        """What was waited for is there, or will not come."""
        self._over.set()

    def wait(self, longest_s: float, is_hopeful: Callable[[], bool] = lambda: True) -> None:
        """Return after `end`, after so many seconds, as the thread of the steps ends, or where there is no hope."""
        if self.is_training_thread:
            return
        until = monotonic() + longest_s
        while monotonic() < until and is_hopeful() and all(one.is_alive() for one in self._threads):
            if self._over.wait(_EVERY_S):
                return


class StepKind(Enum):
    """What the recorder does during a step."""

    PLAIN = auto()
    """Nothing."""
    RECORDED = auto()
    OTHER = auto()
    """It warms up, or writes a trace."""


class StepTimer:
    """Wall time and CPU time of the newest steps on the thread that makes them, without the first step of the run."""

    def __init__(self) -> None:
        self._kept: dict[StepKind, deque[tuple[int, int]]] = {kind: deque(maxlen=_KEPT) for kind in StepKind}
        self._kind = StepKind.OTHER
        self._thread = 0
        self._wall = self._cpu = 0
        """The clocks as the step began."""
        self._is_first = True
        self._awaited: AwaitedSteps | None = None
        self._progress_s = 0.0
        """When the last step ended, or the wait for further ones began."""
        self._is_over = False

    def begin(self, kind: StepKind) -> None:
        """The first step begins, or one after the recorder was at work."""
        self._is_over = False
        self._kind, self._thread = kind, get_ident()
        self._wall, self._cpu = perf_counter_ns(), thread_time_ns()

    def next(self, kind: StepKind) -> None:
        """A step has ended as `kind`, and one of the same kind begins with nothing in between.

        One that began as another kind is not kept: a trace began to be written in it.
        """
        wall, cpu = perf_counter_ns(), thread_time_ns()
        if get_ident() != self._thread:
            self._thread = get_ident()
        elif self._is_first:
            self._is_first = False
        elif self._kind is kind:
            self._kept[self._kind].append((wall - self._wall, cpu - self._cpu))
        self._kind, self._wall, self._cpu = kind, wall, cpu
        if self._awaited is not None:
            self._progress_s = monotonic()
            if self._has_enough:
                self.release()

    def take_over(self, earlier: StepTimer) -> None:
        """Know the steps that another timer of this run has seen."""
        for kind, steps in earlier._kept.items():
            self._kept[kind].extend(steps)
        self._is_first = earlier._is_first

    @property
    def is_awaited(self) -> bool:
        """Whether a trace waits for more plain steps."""
        return self._awaited is not None

    @property
    def _has_enough(self) -> bool:
        return len(self._kept[StepKind.PLAIN]) >= FEWEST

    @property
    def recorded(self) -> UnrecordedStepTimes | None:
        """Of recorded steps; None where there are none."""
        return _times(self._kept[StepKind.RECORDED])

    @property
    def plain(self) -> UnrecordedStepTimes | None:
        """Of plain steps; None where there are too few."""
        return _times(self._kept[StepKind.PLAIN]) if self._has_enough else None

    def plain_later(self) -> Callable[[], UnrecordedStepTimes | None]:
        """What gives the plain steps to the thread that writes the trace of a window which ends now.

        It waits for those to come, unless that would take too long or this thread itself asks; until `release`, the end
        of this thread, or a pause in which no step ends.
        """
        self.release()
        longest_s = max((wall for wall, _ in self._kept[StepKind.RECORDED]), default=0) / 1e9
        if self._is_over or self._has_enough or FEWEST * longest_s > LONGEST_S:
            return lambda: self.plain
        awaited = self._awaited = AwaitedSteps()
        patience_s = max(PATIENCE_S, PATIENCE_STEPS * longest_s)
        self._progress_s = monotonic()

        def wait() -> UnrecordedStepTimes | None:
            awaited.wait(LONGEST_S, lambda: monotonic() - self._progress_s < patience_s)
            return self.plain

        return wait

    def release(self) -> None:
        """No trace waits any longer: somebody waits for it, say."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.end()

    def end(self) -> None:
        self._is_over = True
        self.release()


def _times(steps: deque[tuple[int, int]]) -> UnrecordedStepTimes | None:
    known = list(steps)  # another thread may add one
    if not known:
        return None
    walls, cpus = zip(*known, strict=True)
    return UnrecordedStepTimes(len(known), _spread(walls), _spread(cpus))


def _spread(values: tuple[int, ...]) -> Spread:
    low, middle, high = statistics.quantiles(values, method="inclusive") if len(values) > 1 else values * 3
    return Spread(int(statistics.fmean(values)), (int(low), int(middle), int(high)))
