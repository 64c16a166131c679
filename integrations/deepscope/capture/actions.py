"""What becomes of a step."""

from __future__ import annotations

from enum import Enum, auto


class Action(Enum):
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
        return self is Action.RECORD or self is Action.RECORD_LAST
