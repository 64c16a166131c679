"""One row in the runs before and after: its times, its place, and what is known of the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deepscope.comparison.noise import Interval
from deepscope.records import Line

Status = Literal["same", "moved", "new", "gone"]


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line in one of the sides."""

    path: str
    """Relative to the project root, where that is known."""
    record: Line


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of a comparison. Times are a step's, of one rank, in nanoseconds."""

    name: str
    """Of an operator, kernel, module, phase or number of the step; of a line its function."""
    before: ComparedLine | None
    """Of lines: None for one that is new, and for the work of no line."""
    after: ComparedLine | None
    before_ns: float
    """0 where it is new."""
    after_ns: float
    """0 where it is gone."""
    interval: Interval | None
    """None where nothing tells of the spread."""
    status: Status = "same"

    @property
    def change_ns(self) -> float:
        """After less before."""
        return self.after_ns - self.before_ns

    @property
    def low_ns(self) -> float | None:
        """Where the true difference lies, from here to `high_ns`; None where nothing tells of the spread."""
        return None if self.interval is None else self.interval.low_ns

    @property
    def high_ns(self) -> float | None:
        """The other end."""
        return None if self.interval is None else self.interval.high_ns

    @property
    def within_noise(self) -> bool:
        """Whether the difference may be none at all; so it is where no interval is known."""
        return self.interval is None or self.interval.low_ns <= 0 <= self.interval.high_ns

    @property
    def place(self) -> ComparedLine | None:
        """Where a line stands: after, else before."""
        return self.after or self.before

    @property
    def text(self) -> str:
        """The line that ran; "" where it is not known."""
        place = self.place
        return (place.record.text or "").strip() if place is not None else ""

    @property
    def is_edited(self) -> bool:
        """Whether the line reads otherwise than before."""
        if self.before is None or self.after is None:
            return False
        old, new = self.before.record.text, self.after.record.text
        return old is not None and new is not None and old.strip() != new.strip()
