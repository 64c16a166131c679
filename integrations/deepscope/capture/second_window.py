"""A second window where the first one is not like the run: steps get longer, or long ones come at equal distances.

Long steps follow a roll-out, a generation of samples or the start of a loader's workers. The first window tells nothing
of them, and they may take most of the run: the second one has a whole period.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import thread_time_ns
from typing import Protocol

from deepscope.capture.notices import warn
from deepscope.capture.run_timer import LONG_STEP
from deepscope.errors import DeepScopeError
from deepscope.trace.format.header import UnrecordedStepTimes

WORTH = 0.25
"""What long steps take more than usual ones, of all steps' time."""
GROWN = 1.5
"""Steps have grown that take so many times as long as those behind the first window."""
GROWN_STEPS = 3
"""So many of them are recorded."""
_BLOCK, _BLOCKS = 16, 3
"""So many blocks of so many steps in a row have to have grown."""
_GROWN_CPU = 1.4
"""What is grown has so many times the CPU time of the first block."""
_USUAL_OF = 8
"""The usual step is the median of so many; at most half of them may be long."""
_DISTANCES = 3
"""So many in a row have to be equal."""
_LONGEST_STEPS = 64
_LONGEST_NS = 20_000_000_000
"""Periods that are longer are not recorded."""
_LEAST_NS = 1_000_000
"""A long step takes at least that much more."""
_ATTEMPTS = 2


class SecondRecorder(Protocol):
    """What is needed of `deepscope.capture.recorder.Recorder`."""

    @property
    def traces(self) -> list[Path]: ...
    @property
    def is_at_rest(self) -> bool: ...
    def start(self) -> None: ...
    def step(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self, *, complete: bool = True) -> None: ...
    def discard(self) -> None: ...
    def wait(self) -> bool: ...


class StepRhythm:
    """Learns from steps' lengths at which distance long ones come, and whether all of them get longer.

    `works_elsewhere`: whether a device works beside the CPU. Without one steps get longer only where the thread's own
    CPU time does, which other programs do not lengthen.
    """

    def __init__(self, works_elsewhere: Callable[[], bool]) -> None:
        self._works_elsewhere = works_elsewhere
        self._first: list[int] = []
        self._usual_ns = 0
        self._number = -1
        """Of the newest step."""
        self._long: deque[int] = deque(maxlen=_DISTANCES + 1)
        self._more_ns: deque[int] = deque(maxlen=_DISTANCES + 1)
        """By how much the long ones are longer."""
        self._whole_ns = self._whole_more_ns = 0
        self._block: list[int] = []
        self._grown_blocks = 0
        """The newest ones in a row."""
        self._cpu_ns = self._first_block_cpu_ns = 0

    def add(self, length_ns: int) -> int | None:
        """A step has ended. How many steps are to be recorded, behind one that warms up; None for no window here."""
        self._number += 1
        self._whole_ns += length_ns
        if len(self._first) < _USUAL_OF:
            self._first.append(length_ns)
            if len(self._first) == _USUAL_OF:
                self._usual_ns = sorted(self._first)[(_USUAL_OF - 1) // 2]
                self._cpu_ns = thread_time_ns()
            return None
        more_ns = length_ns - self._usual_ns
        if length_ns >= LONG_STEP * self._usual_ns and more_ns >= _LEAST_NS:
            self._long.append(self._number)
            self._more_ns.append(more_ns)
            self._whole_more_ns += more_ns
        period = self._period()
        if period and self._number == self._long[-1] + period - 2:
            return period
        self._block.append(length_ns)
        return GROWN_STEPS if len(self._block) == _BLOCK and self._grows() else None

    def has_long(self, recorded: UnrecordedStepTimes) -> bool:
        """Whether there is a long one among these steps."""
        more_ns = (recorded.wall.mean_ns - self._usual_ns) * recorded.steps
        return bool(self._more_ns) and more_ns > min(self._more_ns) / 2

    def _period(self) -> int:
        """0 where there is none that is worth a window."""
        if len(self._long) <= _DISTANCES or self._whole_more_ns < WORTH * self._whole_ns:
            return 0
        distances = {later - earlier for earlier, later in pairwise(self._long)}
        period = distances.pop()
        is_regular = not distances and max(self._more_ns) < 2 * min(self._more_ns)
        is_short = period * self._usual_ns + max(self._more_ns) < _LONGEST_NS
        return period if is_regular and is_short and 2 <= period <= _LONGEST_STEPS else 0

    def _grows(self) -> bool:
        before_ns, self._cpu_ns = self._cpu_ns, thread_time_ns()
        cpu_ns = self._cpu_ns - before_ns
        self._first_block_cpu_ns = self._first_block_cpu_ns or cpu_ns
        works_longer = cpu_ns > _GROWN_CPU * self._first_block_cpu_ns or self._works_elsewhere()
        has_grown = works_longer and sorted(self._block)[_BLOCK // 2] > GROWN * self._usual_ns
        self._grown_blocks = self._grown_blocks + 1 if has_grown else 0
        self._block.clear()
        return self._grown_blocks == _BLOCKS


class SecondWindow:
    """Opens once; of a period so that its first step is the long one.

    `make` makes the recorder of so many steps behind one that warms up; `is_free` says whether nothing else is being
    recorded. `first`: the recorded steps of the first window. `works_elsewhere`: as `StepRhythm` takes it.
    """

    def __init__(
        self,
        make: Callable[[int], SecondRecorder],
        is_free: Callable[[], bool],
        first: Callable[[], UnrecordedStepTimes | None],
        works_elsewhere: Callable[[], bool],
    ) -> None:
        self._make = make
        self._is_free = is_free
        self._first = first
        self._new_rhythm = partial(StepRhythm, works_elsewhere)
        self._rhythm: StepRhythm | None = self._new_rhythm()
        """None where no window opens any more."""
        self._attempts = 0
        self._recorder: SecondRecorder | None = None
        self._wanted = self._ended = 0
        """The steps that have ended since it was opened, with the one that warms up."""

    @property
    def traces(self) -> list[Path]:
        """The file, once it is written."""
        return [] if self._recorder is None else self._recorder.traces

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is recorded, or looked at."""
        return self._recorder is None or self._recorder.is_at_rest

    def end_step(self, length_ns: int) -> None:
        """A step has ended, after so long, without evaluations, checkpoints and the recorder's work."""
        if self._recorder is not None:
            self._ended += 1
            if not self._recorder.is_at_rest:
                self._recorder.step()
        elif self._rhythm is not None and self._is_free() and (steps := self._rhythm.add(length_ns)):
            first = self._first()
            if first is not None and self._rhythm.has_long(first):
                self._rhythm = None
            else:
                self._open(steps)

    def pause(self) -> None:
        """Between two steps: what follows until `resume` is no step. A window that has steps is no whole period."""
        if self._recorder is None:
            return
        if 1 < self._ended <= self._wanted:
            self._recorder.discard()
            self._recorder.stop()
            self._recorder = None
            self._rhythm = self._new_rhythm() if self._attempts < _ATTEMPTS else None
        else:
            self._recorder.pause()

    def resume(self) -> None:
        if self._recorder is not None:
            self._recorder.resume()

    def stop(self) -> None:
        self._rhythm = None
        if self._recorder is not None:
            if self._ended <= self._wanted:
                self._recorder.discard()
            self._recorder.stop()

    def wait(self) -> None:
        if self._recorder is not None:
            self._recorder.wait()

    def _open(self, steps: int) -> None:
        self._attempts += 1
        try:
            recorder = self._make(steps)
            recorder.start()
        except DeepScopeError as error:
            self._rhythm = None
            warn(f"the second window is not recorded: {error}")
        else:
            self._recorder, self._wanted, self._ended = recorder, steps, 0
