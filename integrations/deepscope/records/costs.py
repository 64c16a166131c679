"""The numbers that a user sees first, each defined once: what lines cost, how long a step is, how fast operators are.

docs/glossary.md has the formulas. Faces show these and compute none of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from deepscope.records.numbers import Numbers
    from deepscope.records.operators import Operator
    from deepscope.records.profile import Profile

Row = TypeVar("Row", bound="Numbers")


def cost_ns(row: Numbers) -> int:
    """What a row costs the run, without what a training framework does there on its own account."""
    return row.cost_ns - row.framework_ns


@dataclass(frozen=True, slots=True)
class Costs:
    """What the lines of one profile cost, as shares of all that the run costs and as times a step."""

    whole_ns: int
    """Of all lines, with the framework's own and the work of no line."""
    steps: int
    """0 where the trace has none: a time a step is then that of the whole recording."""
    ranks: int

    @classmethod
    def of(cls, profile: Profile) -> Costs:
        """The costs of a profile."""
        whole_ns = sum(row.cost_ns for row in (*profile.lines, profile.no_line))
        return cls(whole_ns, profile.totals.steps, max(1, profile.totals.ranks))

    def share(self, *rows: Numbers) -> float:
        """The part of the run's cost that rows have together, 0 to 1."""
        return self.share_of(sum(map(cost_ns, rows)))

    def share_of(self, duration_ns: float) -> float:
        """The same of a time."""
        return duration_ns / self.whole_ns if self.whole_ns else 0.0

    def per_step(self, value: float) -> float:
        """The mean of a sum over steps and ranks."""
        return value / (max(1, self.steps) * self.ranks)

    def per_step_ns(self, *rows: Numbers) -> float:
        """The cost of rows together in a step of a rank; what lies outside the steps is left out."""
        return self.per_step(sum(cost_ns(row) - row.outside_ns - row.python_outside_ns for row in rows))

    @staticmethod
    def ranked(rows: Iterable[Row]) -> list[Row]:
        """Rows by their cost, the largest first; of equals the one that waits and works longest on the CPU."""
        return sorted(rows, key=lambda row: (-cost_ns(row), -row.self_device_ns, -row.wait_ns, -row.self_cpu_ns))


class KeyFigures(msgspec.Struct, kw_only=True):
    """The numbers of a whole run; None for what is not known."""

    steps: int
    step_ns: float | None
    """The mean length of a step: the time of the steps by their number and the ranks."""
    device_step_ns: float | None
    """What a step takes the device, where by its end the device is further behind than a step is long: nothing waits
    for it, and the CPU runs ahead until it has to. None where it is not."""
    busy_share: float | None
    """How much of the time some stream of a device works; None without a device."""
    idle_share: float | None
    waiting_per_step_ns: float
    """Calls that wait for the device, in a step of a rank; waits outside the steps are left out."""
    waiting_share: float
    """The same as a part of the time."""
    recording_ns: int
    """What recording the lines cost, over all steps and ranks."""
    recording_share: float
    """The same as a part of the time."""
    cost_ns: int
    """What all lines cost, and what ran on none."""


def key_figures(profile: Profile) -> KeyFigures:
    """The numbers of a run as a whole."""
    totals, costs = profile.totals, Costs.of(profile)
    device_ns = totals.busy_ns + totals.idle_ns if profile.metric == "device" else 0
    of_steps = profile.part_of is None and bool(profile.steps)
    waiting_ns = sum(step.wait_ns for step in profile.steps) if of_steps else totals.wait_ns
    recorded_ns = totals.wall_ns + totals.added_ns
    return KeyFigures(
        steps=totals.steps,
        step_ns=step_length_ns(profile),
        device_step_ns=_device_step_ns(profile),
        busy_share=totals.busy_ns / device_ns if device_ns else None,
        idle_share=totals.idle_ns / device_ns if device_ns else None,
        waiting_per_step_ns=costs.per_step(waiting_ns),
        waiting_share=waiting_ns / totals.wall_ns if totals.wall_ns else 0.0,
        recording_ns=totals.recording_ns,
        recording_share=totals.recording_ns / recorded_ns if recorded_ns else 0.0,
        cost_ns=costs.whole_ns,
    )


def step_length_ns(profile: Profile) -> float | None:
    """The mean length of a step, over the steps and the ranks; None where the trace has none."""
    totals = profile.totals
    if not totals.steps:
        return None
    whole_ns = totals.wall_ns if profile.part_of is None else sum(step.duration_ns for step in profile.steps)
    return whole_ns / (totals.steps * max(1, totals.ranks))


def _device_step_ns(profile: Profile) -> float | None:
    totals, length_ns = profile.totals, step_length_ns(profile)
    if length_ns is None or totals.behind_ns <= length_ns:
        return None
    return length_ns + totals.behind_ns / totals.steps


def flops_per_s(*operators: Operator) -> float | None:
    """Operations a second of operators together, over the work of which they are known; None where they are not."""
    return _per_second(operators, "flops")


def bytes_per_s(*operators: Operator) -> float | None:
    """Bytes a second, the same way."""
    return _per_second(operators, "moved_bytes")


def _per_second(operators: Sequence[Operator], field: str) -> float | None:
    rates = [rate for one in operators for rate in one.why.rates if getattr(rate, field)]
    time_ns = sum(rate.device_ns for rate in rates)
    return sum(getattr(rate, field) for rate in rates) * 1e9 / time_ns if time_ns else None
