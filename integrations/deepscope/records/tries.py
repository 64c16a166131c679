"""Remedies and changes that were tried on a program: what each gained, and whether the losses stayed the same."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

TryVerdict = Literal["faster", "no gain", "slower", "inconclusive", "results differ", "not applicable", "failed"]
VERDICTS: tuple[TryVerdict, ...] = get_args(TryVerdict)

Losses = Literal["identical", "within rounding", "different", "other random numbers", "not comparable"]
LOSSES: tuple[Losses, ...] = get_args(Losses)


class Try(msgspec.Struct, kw_only=True, frozen=True):
    """One remedy, or a set of them, tried on a program; what was not measured is None."""

    finding: str
    """The code of the finding that it answers: `DS003`; "" where it answers none."""
    remedy: str
    """Its name and what is written for it: `loader-workers: DataLoader(num_workers=1)`."""
    before_ns: float | None = None
    """A step of the unchanged program."""
    after_ns: float | None = None
    """A step with the remedy."""
    speedup: float | None = None
    """The unchanged step by the changed one, over the pairs of runs."""
    interval: tuple[float, float] | None = None
    """That holds the speedup with 95 % confidence."""
    verdict: TryVerdict
    """What came of it; `results differ` goes before any gain of time."""
    reason: str = ""
    """Why, where the verdict alone does not say it."""
    losses: Losses = "not comparable"
    """Those of the changed runs beside those of the unchanged ones."""

    @property
    def margin(self) -> float:
        """Half of the interval; 0 without one."""
        return (self.interval[1] - self.interval[0]) / 2 if self.interval else 0.0
