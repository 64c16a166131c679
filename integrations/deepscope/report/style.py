"""Colours of a terminal, or none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Styles:
    """Styles by what they mean; without colour they leave a text as it is."""

    color: bool = False

    def title(self, text: str) -> str:
        """Names of columns and of the header's entries."""
        return self._wrapped("1", text)

    def heading(self, text: str) -> str:
        """Titles of sections."""
        return self._wrapped("1;36", text)

    def quiet(self, text: str) -> str:
        """What explains, and is read once."""
        return self._wrapped("2", text)

    def hot(self, text: str) -> str:
        """A fifth of all, or more."""
        return self._wrapped("1;31", text)

    def warm(self, text: str) -> str:
        """A twentieth of all, or more."""
        return self._wrapped("33", text)

    def good(self, text: str) -> str:
        """What became less."""
        return self._wrapped("32", text)

    def _wrapped(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


def wants_color(stream: TextIO) -> bool:
    """Whether the stream is a terminal that takes colours: `NO_COLOR` (https://no-color.org) and `TERM=dumb` say no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()
