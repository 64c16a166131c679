"""Pieces of advice with the figures that they rest on, and what became of those that were tried."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec

from deepscope.records.merging import First, RankRecords, Sum, merged_by, of_largest

Severity = Literal["warning", "info", "hint"]
Evidence = dict[str, int | float | str]

_SEVERITIES: tuple[tuple[float, Severity], ...] = ((0.1, "warning"), (0.02, "info"))
"""By the share of the wall time that would be saved."""


def severity_of(saving_ns: int, wall_ns: int) -> Severity:
    """How much a saving weighs: a tenth of the wall time is a warning, less than a fiftieth a hint."""
    share = saving_ns / wall_ns if wall_ns else 0.0
    return next((severity for limit, severity in _SEVERITIES if share >= limit), "hint")


_WEIGHT = {"warning": 2, "info": 1, "hint": 0}


def _heaviest(group: RankRecords[Any], field: str) -> str:
    severities: list[str] = group.values(field)
    return max(severities, key=_WEIGHT.__getitem__)


def _figures(group: RankRecords[Any], field: str) -> Evidence:
    """Those of the rank with the largest saving; integers are summed over the ranks."""
    tables: list[Evidence] = group.values(field)
    chosen: Evidence = of_largest("saving_ns")(group, field)
    return {
        name: sum(v for one in tables if isinstance(v := one.get(name), int)) if isinstance(value, int) else value
        for name, value in chosen.items()
    }


_Value = TypeVar("_Value")
OfLargest = Annotated[_Value, merged_by(of_largest("saving_ns"))]


class Edit(msgspec.Struct):
    """A replacement within one line of a finding's file, `old` at its first place in the text that ran."""

    line: int
    old: str
    new: str


class Remedy(msgspec.Struct):
    """What to do about a finding: in words, and as edits where a machine can make them, all together or none."""

    text: str
    edits: list[Edit] = []


class Finding(msgspec.Struct, kw_only=True):
    """A piece of advice, with the figures that it rests on (docs/findings)."""

    code: First[str]
    """Stable: `DS001`."""
    title: First[str]
    severity: Annotated[Severity, merged_by(_heaviest)]
    """By the share of the wall time that would be saved: from a tenth, from a fiftieth, less."""
    file: First[str]
    """As recorded; "" where no line is known."""
    line: First[int]
    """0 where no line is known."""
    function: OfLargest[str] = ""
    message: OfLargest[str]
    evidence: Annotated[Evidence, merged_by(_figures)]
    """Figures by name: `…_ns` and `…_bytes` over the whole profile, means in `…_us`; integers add up over ranks."""
    saving_ns: Sum
    """Wall time that can be saved, over the whole profile."""
    is_measured: First[bool] = False
    """Whether programs with this mistake gained about what the rule promised (docs/findings); else it is a bound."""
    remedy: OfLargest[Remedy]
    doc: First[str]
    """The page about it, below the project's root and in the installed package: `docs/findings/DS001.md`."""


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
