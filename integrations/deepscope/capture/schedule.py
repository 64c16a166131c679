"""The schedule of a recording: what becomes of each step of a run, also where the run is shorter than its schedule."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, NamedTuple

from torch.profiler import ProfilerAction

from deepscope.capture import torch_compat
from deepscope.capture.options import RecordingOptions
from deepscope.errors import OptionError


class StepAction(Enum):
    """What becomes of a step."""

    PASS = auto()
    WARM_UP = auto()
    RECORD = auto()
    RECORD_LAST = auto()
    """It is recorded, as the last of its window."""
    RESERVE = auto()
    """It is recorded in case the run ends before its first window."""

    @property
    def is_recorded(self) -> bool:
        """Whether the step belongs to a window of the schedule."""
        return self is StepAction.RECORD or self is StepAction.RECORD_LAST


_LOOK_AHEAD = 10_000
"""Up to so many steps a caller's own schedule is looked through for one that records; a longer run is left to it."""


_OF_TORCH = {
    ProfilerAction.NONE: StepAction.PASS,
    ProfilerAction.WARMUP: StepAction.WARM_UP,
    ProfilerAction.RECORD: StepAction.RECORD,
    ProfilerAction.RECORD_AND_SAVE: StepAction.RECORD_LAST,
}
"""What a caller's own schedule may answer with."""


@dataclass(frozen=True)
class Schedule:
    """The action for each step, 0-based."""

    action: Callable[[int], StepAction]
    """Raises `OptionError` when a caller's own schedule answers with something else than torch's actions."""
    is_sure: bool
    """Whether the first step need not be recorded in reserve."""
    numbers: Mapping[str, int] | None = None
    """`skip_first`, `wait`, … as used; None for a caller's own schedule, and for one by time."""
    has_ended: Callable[[], bool] | None = None
    """Of a schedule by time: whether its window is over."""

    @classmethod
    def of(cls, options: RecordingOptions, total_steps: int | None = None) -> Schedule:
        """The schedule that the options make for a run of so many steps, where that is known.

        A schedule that would not open in so few steps is shortened: first `skip_first`, then `wait`, then `warmup` give
        way, until one step is recorded.
        """
        if options.time is not None:
            window = TimeWindow(options.after, options.time, int(options.warmup))
            return cls(window.action, is_sure=False, has_ended=lambda: window.is_over)
        is_sure = total_steps is not None
        if options.schedule is None:
            numbers = _shortened(options, total_steps)
            return cls(_cycles(**numbers), is_sure, numbers)
        action = _checked(options.schedule)
        if total_steps and total_steps <= _LOOK_AHEAD and not _opens(action, total_steps):
            action = _last_step_of(total_steps)
        return cls(action, is_sure)

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, int], total_steps: int | None) -> Schedule:
        """The schedule of other ranks' `numbers`; in so few steps it may not open, and the first one is in reserve."""
        first = numbers["skip_first"] + numbers["wait"] + numbers["warmup"]
        return cls(_cycles(**numbers), total_steps is not None and first < total_steps, numbers)

    @property
    def has_cycles(self) -> bool:
        """Whether it counts steps; one by time, and one of a whole block, does not."""
        return self.has_ended is None and self is not WHOLE_BLOCK

    def is_over(self, step: int) -> bool:
        """Whether no step from `step` on is recorded or warmed up; never so for a caller's own schedule."""
        if self.has_ended is not None:
            return self.has_ended()
        numbers = self.numbers
        if numbers is None or not numbers["repeat"]:
            return False
        return step >= numbers["skip_first"] + numbers["repeat"] * _cycle(numbers)

    def next_cycle(self, step: int) -> int:
        """The first step of a cycle from `step` on; `step` itself for a caller's own schedule."""
        numbers = self.numbers
        return step if numbers is None else step + (numbers["skip_first"] - step) % _cycle(numbers)


WHOLE_BLOCK = Schedule(lambda _step: StepAction.RECORD, is_sure=True)
"""One window from the start to the stop, whether there are steps or not."""


_OVER = Schedule(lambda _step: StepAction.PASS, is_sure=True, has_ended=lambda: True)


def _cycle(numbers: Mapping[str, int]) -> int:
    return numbers["wait"] + numbers["warmup"] + numbers["active"]


def _shortened(options: RecordingOptions, total_steps: int | None) -> dict[str, int]:
    numbers = {name: getattr(options, name) for name in ("skip_first", "wait", "warmup", "active", "repeat")}
    if total_steps:
        excess = sum(numbers[name] for name in ("skip_first", "wait", "warmup")) + 1 - total_steps
        for name in ("skip_first", "wait", "warmup"):
            given = min(max(excess, 0), numbers[name])
            numbers[name] -= given
            excess -= given
    return numbers


def _cycles(*, skip_first: int, wait: int, warmup: int, active: int, repeat: int) -> Callable[[int], StepAction]:
    """As `torch.profiler.schedule`, which warns at `warmup=0`."""
    length = wait + warmup + active

    def action(step: int) -> StepAction:
        cycle, position = divmod(step - skip_first, length)
        if cycle < 0 or (repeat and cycle >= repeat) or position < wait:
            return StepAction.PASS
        if position < wait + warmup:
            return StepAction.WARM_UP
        return StepAction.RECORD if position < length - 1 else StepAction.RECORD_LAST

    return action


def _checked(schedule: Callable[[int], Any]) -> Callable[[int], StepAction]:
    def action(step: int) -> StepAction:
        answer = schedule(step)
        if not isinstance(answer, ProfilerAction) or answer not in _OF_TORCH:
            raise OptionError(
                "schedule", schedule, f"answered {answer!r} for step {step}; must be a torch.profiler.ProfilerAction"
            )
        return _OF_TORCH[answer]

    return action


def _opens(action: Callable[[int], StepAction], total_steps: int) -> bool:
    return any(action(step).is_recorded for step in range(total_steps))


def _last_step_of(total_steps: int) -> Callable[[int], StepAction]:
    return lambda step: StepAction.RECORD_LAST if step == total_steps - 1 else StepAction.PASS


# A window by time: it opens so many seconds after the first step, and closes so many seconds later, between two steps.
#
# Each rank has a clock of its own, and their first steps do not end at the same moment. So the first rank whose time
# has come names a step close ahead, in the process group's key-value store, and all of them take that one.


_SKEW_SECONDS = 0.2
"""By so much the ranks' clocks may differ; the step that they agree on lies at least so far ahead."""

_numbers = itertools.count(1)
"""Of the windows by time: the n-th of this process is the n-th of the other ranks, too."""


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

    def action(self, step: int) -> StepAction:
        """What becomes of the step that begins now."""
        now = self._clock()
        if step == 0 or self.is_over:
            return StepAction.PASS
        if self._began is None:
            self._began = now
        if self._prepare is None and now - self._began >= self._after_seconds:
            self._prepare = self._ahead("begin", step, now)
        if self._prepare is None or step < self._prepare:
            return StepAction.PASS
        if self._opened is None and step < self._prepare + self._warmup:
            return StepAction.WARM_UP
        if self._opened is None:
            self._opened = now
        if self._end is None and now - self._opened >= self._seconds:
            self._end = self._ahead("end", step, now)
        self.is_over = self._end is not None and step >= self._end
        return StepAction.PASS if self.is_over else StepAction.RECORD

    def _ahead(self, what: str, step: int, now: float) -> int:
        """The agreed step; this one where no other rank is there."""
        if self._number is None:
            self._number = next(_numbers)
        assert self._began is not None
        length = (now - self._began) / max(step - 1, 1)
        margin = 1 if length >= _SKEW_SECONDS or not length else math.ceil(_SKEW_SECONDS / length)
        return max(step, self._agree(f"deepscope/time/{self._number}/{what}", step + margin))


def _agreed(key: str, step: int) -> int:
    """Alone, the step itself, without the margin for others."""
    if not torch_compat.has_other_ranks():
        return 0
    words = torch_compat.agreed_value(key, str(step))
    return int(words) if words is not None and words.isdecimal() else step


class Move(Enum):
    """What is done with a window between two steps."""

    PREPARE = auto()
    """Torch sets up its tracing for a window."""
    OPEN = auto()
    """A window opens, the prepared one where there is one."""
    OPEN_IN_RESERVE = auto()
    """A window opens that is kept in case the schedule's own never closes."""
    STEP = auto()
    """The open window goes on with another step."""
    SET_ASIDE = auto()
    """The window in reserve ends."""
    CLOSE = auto()
    """The schedule's window ends and is saved."""


_ENDS = {StepAction.RECORD: Move.CLOSE, StepAction.RECORD_LAST: Move.CLOSE, StepAction.RESERVE: Move.SET_ASIDE}
_BEGINS = {
    StepAction.WARM_UP: Move.PREPARE,
    StepAction.RECORD: Move.OPEN,
    StepAction.RECORD_LAST: Move.OPEN,
    StepAction.RESERVE: Move.OPEN_IN_RESERVE,
}


class Plan(NamedTuple):
    """A schedule and the step that it has come to; what comes next is another plan."""

    schedule: Schedule
    step: int = -1
    """-1 before the first."""
    before: StepAction = StepAction.PASS
    """What became of the step before, where a window may be open from it."""
    action: StepAction = StepAction.PASS
    """What becomes of this one."""

    @property
    def moves(self) -> tuple[Move, ...]:
        """What is done as this step begins, in order."""
        _, _, before, action = self
        if before is StepAction.PASS is action or before is StepAction.WARM_UP is action:
            return ()
        if before is StepAction.RECORD and action.is_recorded:
            return (Move.STEP,)
        return tuple(move for move in (_ENDS.get(before), _BEGINS.get(action)) if move is not None)

    @property
    def opens_another(self) -> bool:
        """Whether one window ends and another one opens as this step begins."""
        return Move.OPEN in self.moves and len(self.moves) > 1

    def put_off(self) -> Plan:
        """The plan where nothing opens as this step begins, and all that was to come comes a step later."""
        return self._replace(step=self.step - 1, action=StepAction.PASS)

    @property
    def is_over(self) -> bool:
        """Whether no step after this one is recorded or warmed up; never so for a caller's own schedule."""
        return self.schedule.is_over(self.step + 1)

    def next(self, *, may_reserve: bool = True) -> Plan:
        """The plan one step further; where the schedule may open too late for the run, its first step is a reserve."""
        step = self.step + 1
        action = self.schedule.action(step)
        if step == 0 and may_reserve and not self.schedule.is_sure and not action.is_recorded:
            action = StepAction.RESERVE
        return Plan(self.schedule, step, self.action, action)

    def broken_off(self) -> Plan:
        """The plan where this step and the rest of its cycle are not recorded; without cycles it is over."""
        schedule = self.schedule
        if schedule.numbers is None:
            return Plan(_OVER, self.step)
        first = schedule.next_cycle(self.step + 1)
        rest = replace(schedule, action=lambda step: StepAction.PASS if step < first else schedule.action(step))
        return Plan(rest, self.step)

    def cut_short(self) -> Plan:
        """The plan where this step's window ends early and its cycle with it: the next step begins with none open."""
        step = self.step
        return Plan(self.schedule, self.schedule.next_cycle(step + 1) - 1 if self.action.is_recorded else step)

    def cut_before(self, *, is_cycle_over: bool) -> Plan:
        """The plan where this step is still to begin, with no window open; it may be the next cycle's first then."""
        first = self.schedule.next_cycle(self.step) if is_cycle_over else self.step
        return Plan(self.schedule, first - 1)
