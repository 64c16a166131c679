"""A rule: what it is called, and how it looks for places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepscope.records import Finding

if TYPE_CHECKING:
    from deepscope.analysis.findings.facts import Facts

__all__ = ["Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; its code is stable, its page is docs/findings/CODE.md."""

    code: str
    title: str
    find: Callable[[Facts], Iterable[Finding]]
