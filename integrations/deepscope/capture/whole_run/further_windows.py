"""Further windows of a run, where the first is not like the rest: one of its long steps, one of an evaluation.

Long steps follow a roll-out, a generation of samples or the start of a loader's workers. The first window tells nothing
of them, nor of evaluations in a plain loop, and either may take most of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import thread_time_ns
from typing import TYPE_CHECKING

from deepscope.capture.notices import warn
from deepscope.capture.whole_run.loader_passes import LoaderPass
from deepscope.capture.whole_run.run_timer import LONG_STEP
from deepscope.errors import DeepScopeError
from deepscope.trace.format.header import UnrecordedStepTimes

if TYPE_CHECKING:
    from deepscope.capture.options import RecordingOptions
    from deepscope.capture.recorder import Recorder

_LONG_STEPS_WORTH = 0.25
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
        if len(self._long) <= _DISTANCES or self._whole_more_ns < _LONG_STEPS_WORTH * self._whole_ns:
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
    """Opens once, with steps that are longer than those of the first window; none opens before `follow`.

    Where long steps come at equal distances it has a whole period, and begins with the long one.

    `make` makes the recorder of so many steps behind one that warms up; `is_free` says whether nothing else is being
    recorded. `first`: the recorded steps of the first window. `works_elsewhere`: as `StepRhythm` takes it.
    """

    def __init__(
        self,
        make: Callable[[int], Recorder],
        is_free: Callable[[], bool],
        first: Callable[[], UnrecordedStepTimes | None],
        works_elsewhere: Callable[[], bool],
    ) -> None:
        self._make = make
        self._is_free = is_free
        self._first = first
        self._new_rhythm = partial(StepRhythm, works_elsewhere)
        self._rhythm: StepRhythm | None = None
        """None where no window opens."""
        self._attempts = 0
        self._recorder: Recorder | None = None
        self._wanted = self._ended = 0
        """The steps that have ended since it was opened, with the one that warms up."""

    def follow(self) -> None:
        """Look at the steps that end from here on."""
        self._rhythm = self._new_rhythm()

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


EVALUATION_WORTH = 0.2
"""Of the run up to now, which evaluations take from then on."""
EVALUATION_WORTH_LOOKING = 0.1
"""The same, where steps are looked at, too."""
EVALUATION_STAGE = "validate"


class EvaluationWindow:
    """Opens once, with a batch of an evaluation; each of its batches is a step.

    Steps behind it that are looked at (`audit`) may be the next evaluation's.
    `make` makes the recorder for a pass over so many batches (None: unknown), of which it takes `batches`; `is_free`
    says whether nothing else is being recorded; `worth` is the share of the run that evaluations have to take.
    """

    def __init__(
        self,
        make: Callable[[int | None], Recorder],
        is_free: Callable[[], bool],
        *,
        batches: int = 1,
        worth: float = EVALUATION_WORTH,
    ) -> None:
        self._make = make
        self._worth = worth
        self._needed = batches
        self._is_free = is_free
        self._pass: LoaderPass | None = None
        self._recorder: Recorder | None = None
        self._batches = 0
        """Those that the pass had before."""
        self._asked: LoaderPass | None = None
        """The last one that had no window."""

    @property
    def is_open(self) -> bool:
        return self._pass is not None

    @property
    def traces(self) -> list[Path]:
        """The file, once it is written."""
        return [] if self._recorder is None else self._recorder.traces

    def next_batch(self, one: LoaderPass, share: float) -> None:
        """An evaluation asks for its next batch; `share` is that of all evaluations, of the run up to now."""
        if self._recorder is None:
            if self._has_room(one) and share >= self._worth and self._is_free():
                self._open(one)
        elif one is self._pass:
            if one.batches != one.length:  # else there is none, and `end` follows
                self._recorder.step()
        elif self._pass is None and self._looks_at_steps and self._is_free():
            self._pass, self._batches = one, one.batches
            self._recorder.step()

    def _has_room(self, one: LoaderPass) -> bool:
        """Whether a pass has as many batches left as are needed, or of fewer all that are left once it is known."""
        left = self._needed if one.length is None else one.length - one.batches
        is_first, self._asked = self._asked is not one, one
        return left >= self._needed or (left > 0 and is_first and one.batches <= 1)

    @property
    def _looks_at_steps(self) -> bool:
        """Whether the window is over, and steps behind it are to be looked at."""
        return self._recorder is not None and self._recorder.is_stopped and not self._recorder.is_at_rest

    def end(self, one: LoaderPass | None = None) -> None:
        """The evaluation has worked on its last batch, or (None) something else goes on by now."""
        if self._pass is None or self._recorder is None or (one is not None and one is not self._pass):
            return
        ended, self._pass = self._pass, None
        if ended.batches == self._batches and not self._recorder.is_stopped:  # it had no more
            self._recorder.discard()
            self._recorder = None
            return
        if one is not None:
            self._recorder.step()
        if self._looks_at_steps:
            self._recorder.pause()
            return
        has_recorded = self._recorder.recording or self._recorder.is_stopped
        self._recorder.stop()
        if not has_recorded:  # it had fewer than it takes to warm up
            self._recorder = None

    def wait(self) -> None:
        """Return once the trace is written; no evaluation follows."""
        if self._recorder is not None:
            if self._looks_at_steps:
                self._recorder.stop()
            self._recorder.wait()

    def _open(self, one: LoaderPass) -> None:
        try:
            recorder = self._recorder = self._make(None if one.length is None else max(one.length - one.batches, 1))
            recorder.start()
        except DeepScopeError as error:
            warn(f"evaluations are not recorded: {error}")
        else:
            self._pass, self._batches = one, one.batches


def at_once(options: RecordingOptions) -> RecordingOptions:
    """A recording's options for a window that begins at once, and does not come again."""
    return replace(options, skip_first=0, wait=0, repeat=1, schedule=None)
