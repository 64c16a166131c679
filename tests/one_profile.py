"""A library of profiles that are there already: what pages answer about them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from deepscope.records import Detail, Profile

__all__ = ["OneProfile"]


class OneProfile(Library):
    """Has one profile, and others by the ids of their runs."""

    def __init__(self, profile: Profile, **others: Profile) -> None:
        super().__init__([])
        self._one = profile
        self._others = others

    def run(self, choice: Choice) -> Any:
        """Its ranks are all that is asked for."""
        return SimpleNamespace(id=choice.run, ranks=self._of(choice).trace.ranks)

    def profile(self, choice: Choice, details: tuple[Detail, ...] = ()) -> Profile:
        """The same whatever is chosen of its run."""
        del details
        return self._of(choice)

    def _of(self, choice: Choice) -> Profile:
        return self._others.get(choice.run, self._one)
