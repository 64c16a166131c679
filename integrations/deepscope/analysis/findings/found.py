"""What a rule finds: a place, figures, what could be saved, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from deepscope.analysis.findings.facts import Facts

__all__ = ["Edit", "Evidence", "Found", "Rule", "Severity"]

Severity = Literal["warning", "info", "hint"]
Evidence = dict[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement within one line of the file that the finding is in; `line` is 1-based."""

    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Found:
    """One place where a rule holds."""

    location: int
    """Index into `Scopes.locations`; -1 where no line is known."""
    message: str
    evidence: Evidence
    """Figures by name: `…_ns` and `…_bytes` over the whole extent, means in `…_us`.

    Integers are counts or sums, which add up over ranks; fractions are not."""
    saving_ns: int
    """At most so much time less over the whole extent; how it is estimated stands in the rule's page."""
    remedy: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; its code is stable, its page is docs/findings/CODE.md."""

    code: str
    title: str
    find: Callable[[Facts], Iterable[Found]]
