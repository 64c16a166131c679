"""A walk along a schedule: what is to be done with windows as each step begins."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from deepscope.capture.actions import Action
from deepscope.capture.schedule import Schedule


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


_ENDS = {Action.RECORD: Move.CLOSE, Action.RECORD_LAST: Move.CLOSE, Action.RESERVE: Move.SET_ASIDE}
_BEGINS = {
    Action.WARM_UP: Move.PREPARE,
    Action.RECORD: Move.OPEN,
    Action.RECORD_LAST: Move.OPEN,
    Action.RESERVE: Move.OPEN_IN_RESERVE,
}


class Plan(NamedTuple):
    """A schedule and the step that it has come to; what comes next is another plan."""

    schedule: Schedule
    step: int = -1
    """-1 before the first."""
    before: Action = Action.PASS
    """What became of the step before, where a window may be open from it."""
    action: Action = Action.PASS
    """What becomes of this one."""

    @property
    def moves(self) -> tuple[Move, ...]:
        """What is done as this step begins, in order."""
        _, _, before, action = self
        if before is Action.PASS is action or before is Action.WARM_UP is action:
            return ()
        if before is Action.RECORD and action.is_recorded:
            return (Move.STEP,)
        return tuple(move for move in (_ENDS.get(before), _BEGINS.get(action)) if move is not None)

    @property
    def is_over(self) -> bool:
        """Whether no step after this one is recorded or warmed up; never so for a caller's own schedule."""
        return self.schedule.is_over(self.step + 1)

    def next(self, *, may_reserve: bool = True) -> Plan:
        """The plan one step further; where the schedule may open too late for the run, its first step is a reserve."""
        step = self.step + 1
        action = self.schedule.action(step)
        if step == 0 and may_reserve and not self.schedule.is_sure and not action.is_recorded:
            action = Action.RESERVE
        return Plan(self.schedule, step, self.action, action)

    def cut_short(self) -> Plan:
        """The plan where this step's window ends early and its cycle with it: the next step begins with none open."""
        step = self.step
        return Plan(self.schedule, self.schedule.next_cycle(step + 1) - 1 if self.action.is_recorded else step)
