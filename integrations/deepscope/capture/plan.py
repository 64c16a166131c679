"""Which steps of a run are recorded, also where the run is shorter than its schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from torch.profiler import ProfilerAction

from deepscope.capture.options import RecordingOptions
from deepscope.errors import OptionError

__all__ = ["Plan", "is_recording"]

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_LOOK_AHEAD = 10_000
"""Up to so many steps a caller's own schedule is looked through for one that records; a longer run is left to it."""


def is_recording(action: ProfilerAction) -> bool:
    """Whether events are kept under `action`."""
    return action in _RECORDING


class Plan:
    """The action for each step, 0-based.

    `total_steps` shortens a schedule that would not open in so few steps: first `skip_first`, then `wait`, then
    `warmup` give way, until one step is recorded.
    """

    def __init__(self, options: RecordingOptions, total_steps: int | None = None) -> None:
        self.numbers: dict[str, int] | None = None
        """The schedule's numbers as used; None for a caller's own schedule."""
        self.is_sure = total_steps is not None
        """Whether the first step need not be recorded in reserve, for a run that may end before its first window."""
        if options.schedule is not None:
            self._action = _checked(options.schedule)
            if total_steps and total_steps <= _LOOK_AHEAD and not _opens(self._action, total_steps):
                self._action = _last_step_of(total_steps)
        else:
            self.numbers = _shortened(options, total_steps)
            self._action = _cycles(**self.numbers)
        self._done = 0
        """Steps of the schedule that lie before step 0."""

    def action(self, step: int) -> ProfilerAction:
        """What happens at `step`; raises `OptionError` when a caller's own schedule answers with something else."""
        return self._action(self._done + step)

    def is_over(self, step: int) -> bool:
        """Whether no step from `step` on is recorded or warmed up; never so for a caller's own schedule."""
        numbers = self.numbers
        if numbers is None or not numbers["repeat"]:
            return False
        return self._done + step >= numbers["skip_first"] + numbers["repeat"] * _cycle(numbers)

    def next_cycle(self, step: int) -> int:
        """The first step of a cycle from `step` on; `step` itself for a caller's own schedule."""
        numbers = self.numbers
        return step if numbers is None else step + (numbers["skip_first"] - self._done - step) % _cycle(numbers)

    def behind(self, steps: int) -> Plan:
        """What is left of the plan once so many steps are done, as a plan of its own: its windows come or do not come,
        and nothing is recorded in reserve for them."""
        rest = copy(self)
        rest._done += steps
        rest.is_sure = True
        return rest


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


def _cycles(*, skip_first: int, wait: int, warmup: int, active: int, repeat: int) -> Callable[[int], ProfilerAction]:
    """As `torch.profiler.schedule`, which warns at `warmup=0`."""
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        cycle, position = divmod(step - skip_first, length)
        if cycle < 0 or (repeat and cycle >= repeat) or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _checked(schedule: Callable[[int], Any]) -> Callable[[int], ProfilerAction]:
    def action(step: int) -> ProfilerAction:
        answer = schedule(step)
        if not isinstance(answer, ProfilerAction):
            raise OptionError(
                "schedule", schedule, f"answered {answer!r} for step {step}; must be a torch.profiler.ProfilerAction"
            )
        return answer

    return action


def _opens(action: Callable[[int], ProfilerAction], total_steps: int) -> bool:
    return any(is_recording(action(step)) for step in range(total_steps))


def _last_step_of(total_steps: int) -> Callable[[int], ProfilerAction]:
    return lambda step: ProfilerAction.RECORD_AND_SAVE if step == total_steps - 1 else ProfilerAction.NONE
