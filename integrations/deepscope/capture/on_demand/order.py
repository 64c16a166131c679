"""A window that somebody asked for, from the request until the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deepscope.capture.on_demand.messages import State

if TYPE_CHECKING:
    from deepscope.capture.recorder import Recorder
    from deepscope.capture.schedule import Plan


@dataclass
class Order:
    """What was asked for, and what has become of it."""

    id: str
    options: Mapping[str, Any]
    warmup: int = 1
    first: int = 0
    """The first step that is recorded."""
    first_number: int = 0
    steps: int | None = None
    end: int | None = None
    """The first step that is not recorded, once that holds."""
    proposed_end: int | None = None
    is_held: bool = False
    """Whether `first` holds."""
    is_dropped: bool = False
    is_at_once: bool = False
    recorder: Recorder | None = None
    thread: int = 0
    state: State = "asked"
    problem: str = ""
    recorded: int = 0
    traces: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_ending: bool = False

    @property
    def begin(self) -> int:
        """The step that the recorder starts with."""
        return self.first - self.warmup

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is recorded any more."""
        return self.state in {"saving", "saved", "failed"}

    def plan(self) -> Plan | None:
        """The steps of its recorder; None for all of them. `end` may come to hold while it is followed."""
        if self.is_at_once:
            return None
        from deepscope.capture.schedule import Action, Plan, Schedule

        def action(step: int) -> Action:
            if step < self.warmup:
                return Action.WARM_UP
            number = self.first + step - self.warmup
            return Action.PASS if self.end is not None and number >= self.end else Action.RECORD

        numbers = None
        if self.steps is not None:
            numbers = {"skip_first": 0, "wait": 0, "warmup": self.warmup, "active": self.steps, "repeat": 1}
        return Plan(Schedule(action, is_sure=True, numbers=numbers))
