"""What a number is shown as: per step and rank, and as a share of the run's cost, of its work or of its time."""

from __future__ import annotations

from dataclasses import dataclass

from deepscope.records import Costs, Numbers, Peaks, Profile, step_length_ns
from deepscope_lsp.engine.recorded_path import parts_of


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of one profile.

    A time per step is the mean over steps and ranks; of a trace without steps it is the whole time.
    """

    is_device: bool
    """Whether times are the device's; else operators' CPU time stands in for them."""
    steps: int
    """0 where the trace has none."""
    ranks: int
    device_ns: int
    """All work of the devices, over all ranks, streams side by side added up."""
    wall_ns: int
    idle_ns: int
    costs: Costs
    """What lines cost: shares are of what all of them cost."""
    peaks: Peaks | None = None
    """Of the device, where they are known."""

    @classmethod
    def of(cls, profile: Profile) -> Scales:
        """The scales of a profile."""
        totals = profile.totals
        return cls(
            is_device=profile.metric == "device",
            steps=totals.steps,
            ranks=max(1, totals.ranks),
            device_ns=totals.device_ns,
            wall_ns=totals.wall_ns,
            idle_ns=totals.idle_ns,
            costs=Costs.of(profile),
            peaks=profile.peaks,
        )

    def per_step(self, value: float) -> float:
        """The mean of a sum over steps and ranks."""
        return self.costs.per_step(value)

    def per_step_of_rank(self, value: float) -> float:
        """The mean over steps of one rank's sum."""
        return value / max(1, self.steps)

    def share(self, duration_ns: float) -> float:
        """Of all device work (on a trace without device events, of the operators'), 0 to 1."""
        return duration_ns / self.device_ns if self.device_ns else 0.0

    def weight(self, numbers: Numbers) -> float:
        """The larger of the shares of the run's cost that a record has by itself and with what it calls."""
        return max(self.costs.share(numbers), self.costs.share_of(numbers.total_device_ns))

    def wall_share(self, duration_ns: float) -> float:
        """Of the steps' wall time, 0 to 1."""
        return duration_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def step_words(self) -> str:
        """What a shown time stands for."""
        return "per step" if self.steps else "in the trace"


def program_of(profile: Profile) -> str:
    """The program that a profile is of: as recorded, else the file from which most of the time was called; or ""."""
    if profile.trace.program:
        return profile.trace.program
    weights: dict[str, int] = {}
    for place, node in enumerate(profile.call_tree):
        root = place
        while (parent := profile.call_tree[root].parent) >= 0:
            root = parent
        line = profile.call_tree[root].line
        if line >= 0 and profile.lines[line].file:
            file = profile.lines[line].file
            weights[file] = weights.get(file, 0) + node.self_device_ns + node.self_cpu_ns
    if not weights:
        return ""
    return "".join(parts_of(max(weights, key=lambda file: weights[file])).parts[-1:])


def mean_step_ns(profile: Profile) -> int | None:
    """The mean duration of a step; None where the trace has none."""
    length_ns = step_length_ns(profile)
    return None if length_ns is None else round(length_ns)
