"""What was observed of a row: its time a step, in each step of each run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from deepscope.records import Kernel, Line, Module, Numbers, Operator, Profile, Step
from deepscope.records.step_times import StepTable, StepTimes, steps_of_blocks

Number = Literal["cost", "self"]
"""What of a line is compared: what it costs the run, or its device time alone."""
NUMBERS: tuple[Number, ...] = get_args(Number)


@dataclass(frozen=True, slots=True)
class Sample:
    """One run's observations: times a step and rank, in nanoseconds."""

    mean_ns: float
    """Over the steps; without steps the time in the whole trace."""
    values: tuple[float, ...]
    """Of each block of steps; a single value where nothing is known of its spread."""

    @property
    def variance(self) -> float:
        """Of the values, by one degree of freedom less than there are; 0 for a single value."""
        count = len(self.values)
        if count < 2:
            return 0.0
        mean = math.fsum(self.values) / count
        return math.fsum((value - mean) ** 2 for value in self.values) / (count - 1)


def samples_of_rows(profile: Profile, table: StepTable, number: Number) -> dict[int, Sample]:
    """Of each row of a table by its index; of the lines, the work of no line under -1."""
    blocks = _Blocks(profile)
    found: dict[int, Sample] = {}
    for one in profile.step_times:
        if one.table == table:
            found[one.row] = blocks.sample(_times(one, number))
    rows: list[tuple[int, Numbers | Operator | Kernel]] = list(enumerate(getattr(profile, table)))
    if table == "lines":
        rows.append((-1, profile.no_line))
    for index, row in rows:
        if index not in found:
            total = _total(row, number)
            found[index] = blocks.whole(total) if total else blocks.sample({})
    return found


def samples_of_phases(profile: Profile) -> dict[str, Sample]:
    """Of each phase's wall time by its name."""
    blocks = _Blocks(profile)
    if not profile.steps:
        return {phase.name: blocks.whole(phase.wall_ns) for phase in profile.phases}
    names = dict.fromkeys(name for step in profile.steps for name in step.phases)
    return {name: blocks.of_steps({id(step): step.phases.get(name, 0) for step in profile.steps}) for name in names}


def samples_of_steps(profile: Profile) -> dict[str, Sample]:
    """Of a step's own numbers by their names, its duration first."""
    blocks, totals = _Blocks(profile), profile.totals
    if not profile.steps:
        whole = {"duration": totals.wall_ns, "device": totals.device_ns, "busy": totals.busy_ns,
                 "idle": totals.idle_ns, "wait": totals.wait_ns}  # fmt: skip
        return {name: blocks.whole(value) for name, value in whole.items()}
    fields = ("duration", "device", "busy", "idle", "wait")
    return {name: blocks.of_steps({id(one): getattr(one, f"{name}_ns") for one in profile.steps}) for name in fields}


def absent(profile: Profile) -> Sample:
    """Of a row that a run does not have: 0 in each step."""
    return _Blocks(profile).sample({})


def added(samples: Sequence[Sample]) -> Sample:
    """Of several rows of one run together; without a spread where one of them has none."""
    shortest = min(len(sample.values) for sample in samples)
    mean = sum(sample.mean_ns for sample in samples)
    if any(len(sample.values) != shortest for sample in samples):
        return Sample(mean, (mean,))
    return Sample(mean, tuple(map(sum, zip(*(sample.values for sample in samples), strict=True))))


class _Blocks:
    """Sums over the blocks of a profile's steps as times a step and rank."""

    def __init__(self, profile: Profile) -> None:
        counts = steps_of_blocks(profile)
        self._per_block = profile.steps_per_block
        self._steps: Sequence[Step] = profile.steps
        self._blocks = list(counts)
        self._counts = [counts[block] for block in self._blocks]
        self._ranks = max(1, profile.totals.ranks)
        self._all_steps = max(1, profile.totals.steps)

    def sample(self, times: Mapping[int, int]) -> Sample:
        """Of times by block."""
        if not self._blocks:
            return self.whole(sum(times.values()))
        sums = [times.get(block, 0) / self._ranks for block in self._blocks]
        values = tuple(value / count for value, count in zip(sums, self._counts, strict=True))
        return Sample(math.fsum(sums) / sum(self._counts), values)

    def of_steps(self, times: Mapping[int, int]) -> Sample:
        """Of times by the identity of the step."""
        by_block: dict[int, int] = {}
        for step in self._steps:
            block = step.number // self._per_block
            by_block[block] = by_block.get(block, 0) + times[id(step)]
        return self.sample(by_block)

    def whole(self, duration_ns: int) -> Sample:
        """Of a time of which nothing but its sum is known."""
        mean = duration_ns / self._all_steps / self._ranks
        return Sample(mean, (mean,))


def _times(one: StepTimes, number: Number) -> dict[int, int]:
    if number == "self" or not one.beside_ns:
        return one.device_ns
    return {block: one.device_ns.get(block, 0) + one.beside_ns.get(block, 0)
            for block in {*one.device_ns, *one.beside_ns}}  # fmt: skip


def _total(row: Numbers | Operator | Kernel, number: Number) -> int:
    if isinstance(row, Kernel):
        return row.device_ns
    if number == "cost" and not isinstance(row, (Operator, Module)) and isinstance(row, (Line, Numbers)):
        return row.cost_ns - row.outside_ns - row.python_outside_ns
    return row.self_device_ns if isinstance(row, Operator) else row.self_in_steps_ns
