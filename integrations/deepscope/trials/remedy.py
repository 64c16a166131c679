"""A remedy: what it answers, when it cannot be applied, and how it is applied to a program from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from deepscope.trials.messages import Change, ProgramFacts, Settings

if TYPE_CHECKING:
    from deepscope.trials.child.hooks import RemedyHooks

Decision: TypeAlias = Settings | str
"""What is set on a program of such facts; or why the remedy is not applicable to it."""


@dataclass(frozen=True)
class AppliedRemedy:
    """One change that needs no edit of the program."""

    name: str
    written: str
    """What a user writes for it, with its settings in braces: `DataLoader(num_workers={num_workers})`."""
    decide: Callable[[ProgramFacts], Decision]
    apply: Callable[[Settings, RemedyHooks], None]
    """Called in the process that runs the program, before the program starts."""
    findings: tuple[str, ...] = ()
    """Codes of the findings that it answers."""
    rounding: float = 0.0
    """The relative rounding of a lower precision that it computes in; 0 where it keeps the program's own."""
    draws_otherwise: bool = False
    """Whether with it a program may draw its random numbers in another order, or from other generators."""
    clashes: frozenset[str] = field(default=frozenset())
    """Names of remedies that are not applied beside it."""

    def words(self, settings: Settings) -> str:
        """Its name and what is written for it."""
        return f"{self.name}: {self.written.format(**settings)}"

    def change(self, settings: Settings) -> Change:
        """As a run is asked for it."""
        return Change(self.name, settings)
