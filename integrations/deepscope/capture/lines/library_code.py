"""What is known of the code of libraries, from its instructions and from what ran; kept from one window to the next."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType
from typing import NamedTuple

from deepscope.capture.lines.line_flow import UNKNOWN, lines_before, lines_without_calls

_ANY = frozenset({UNKNOWN})
_TELLS_LINES_APART = sys.version_info >= (3, 12)


class Trial(NamedTuple):
    """How far a line's first trial has come; the fields are those of a `Slot`."""

    judged: int
    long: int


class LibraryCode:
    """One code object of a library; keeps it alive, so that its `id` stays its own."""

    __slots__ = ("_before", "code", "idle", "is_left_alone", "on_trial", "verdicts")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.idle = lines_without_calls(code)
        """Lines in which no operator can run, whatever their values."""
        self.verdicts: dict[int, bool] = {}
        """By line, whether it holds operators. That it does is kept only where it is certain: a first step's lines all
        take long."""
        self.on_trial: dict[int, Trial] = {}
        """By line, of those of which that is not known yet."""
        self.is_left_alone = False
        """Whether no operator was seen in it for long enough."""
        self._before: Mapping[int, frozenset[int]] | None = None

    def before(self, line: int) -> frozenset[int]:
        """The lines that may run right before `line` in its frame; `UNKNOWN` among them where that may be any."""
        if self._before is None:
            self._before = lines_before(self.code) if _TELLS_LINES_APART else {}
        return self._before.get(line, _ANY)

    def holds_nothing(self, line: int) -> bool:
        """Whether it is known that no operator runs in `line`."""
        return line in self.idle or self.verdicts.get(line) is False
