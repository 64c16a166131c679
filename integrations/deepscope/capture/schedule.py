"""The schedule of a recording: what becomes of each step of a run, also where the run is shorter than its schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch.profiler import ProfilerAction

from deepscope.capture.actions import Action
from deepscope.capture.options import RecordingOptions
from deepscope.capture.time_window import TimeWindow
from deepscope.errors import OptionError

_LOOK_AHEAD = 10_000
"""Up to so many steps a caller's own schedule is looked through for one that records; a longer run is left to it."""


_OF_TORCH = {
    ProfilerAction.NONE: Action.PASS,
    ProfilerAction.WARMUP: Action.WARM_UP,
    ProfilerAction.RECORD: Action.RECORD,
    ProfilerAction.RECORD_AND_SAVE: Action.RECORD_LAST,
}
"""What a caller's own schedule may answer with."""


@dataclass(frozen=True)
class Schedule:
    """The action for each step, 0-based."""

    action: Callable[[int], Action]
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
    def told(cls, numbers: Mapping[str, int], total_steps: int | None) -> Schedule:
        """The schedule of other ranks' `numbers`; in so few steps it may not open, and the first one is in reserve."""
        first = numbers["skip_first"] + numbers["wait"] + numbers["warmup"]
        return cls(_cycles(**numbers), total_steps is not None and first < total_steps, numbers)

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


WHOLE_BLOCK = Schedule(lambda _step: Action.RECORD, is_sure=True)
"""One window from the start to the stop, whether there are steps or not."""


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


def _cycles(*, skip_first: int, wait: int, warmup: int, active: int, repeat: int) -> Callable[[int], Action]:
    """As `torch.profiler.schedule`, which warns at `warmup=0`."""
    length = wait + warmup + active

    def action(step: int) -> Action:
        cycle, position = divmod(step - skip_first, length)
        if cycle < 0 or (repeat and cycle >= repeat) or position < wait:
            return Action.PASS
        if position < wait + warmup:
            return Action.WARM_UP
        return Action.RECORD if position < length - 1 else Action.RECORD_LAST

    return action


def _checked(schedule: Callable[[int], Any]) -> Callable[[int], Action]:
    def action(step: int) -> Action:
        answer = schedule(step)
        if not isinstance(answer, ProfilerAction) or answer not in _OF_TORCH:
            raise OptionError(
                "schedule", schedule, f"answered {answer!r} for step {step}; must be a torch.profiler.ProfilerAction"
            )
        return _OF_TORCH[answer]

    return action


def _opens(action: Callable[[int], Action], total_steps: int) -> bool:
    return any(action(step).is_recorded for step in range(total_steps))


def _last_step_of(total_steps: int) -> Callable[[int], Action]:
    return lambda step: Action.RECORD_LAST if step == total_steps - 1 else Action.PASS
