"""What an event says beside its times: phase, category, name, process and thread. A trace has few combinations.

One look-up an event tells all that hangs on them; whole columns do the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_values
from deepscope.trace.kineto.decode import Event
from deepscope.trace.kineto.values import Table
from deepscope.trace.model import Int32


class PhaseGroup(IntEnum):
    """Events that are read alike, by their phase."""

    IGNORED = 0
    COMPLETE = 1
    HALF = 2
    """Chrome's other way to write a complete event: `ph: B`, then `ph: E` on the same thread."""
    FLOW = 3
    """Arrows from forward to backward."""
    LAUNCH = 4
    """Ascend's arrows from calls to work."""
    MEMORY = 5
    """Allocations and releases."""
    COUNTER = 6
    METADATA = 7


_PHASES = {
    "X": PhaseGroup.COMPLETE,
    "B": PhaseGroup.HALF,
    "E": PhaseGroup.HALF,
    "M": PhaseGroup.METADATA,
    "C": PhaseGroup.COUNTER,
}
# Other arrows (`ac2g`, `async`) say no more than the correlation does.
_ARROWS = {"fwdbwd": PhaseGroup.FLOW, "forward_backward": PhaseGroup.FLOW, "HostToDevice": PhaseGroup.LAUNCH}


def _group(phase: str, category: str, name: str) -> PhaseGroup:
    if phase in {"s", "f"}:
        return _ARROWS.get(category, PhaseGroup.IGNORED)
    if phase in {"i", "I"}:
        return PhaseGroup.MEMORY if name == "[memory]" else PhaseGroup.IGNORED
    return _PHASES.get(phase, PhaseGroup.IGNORED)


class Heads:
    """The combinations seen so far, by code; their words and threads go into the tables once they are asked for.

    Args:
        strings: gets the categories and names.
        threads: gets (pid, tid).
    """

    def __init__(self, strings: Table, threads: Table) -> None:
        self._strings = strings
        self._threads = threads
        self._codes = Table()
        self._keys: list[_Key] = []
        self._group = np.zeros(0, np.uint8)
        self._is_start = np.zeros(0, np.bool_)
        self._category = np.zeros(0, np.int32)
        self._name = np.zeros(0, np.int32)
        self._thread = np.zeros(0, np.int32)

    def of(self, events: list[Event]) -> Int32:
        """The code of each event's combination."""
        codes = self._codes
        return self._known([codes[e.ph, e.cat, e.name, e.pid, e.tid] for e in events])

    def of_joined(self, events: list[Event]) -> Int32:
        """The same for complete events that were put together out of halves."""
        codes = self._codes
        return self._known([codes["X", e.cat, e.name, e.pid, e.tid] for e in events])

    def _known(self, codes: list[int]) -> Int32:
        """The codes as an array; what depends on new ones is worked out first."""
        new = list(islice(reversed(self._codes), len(self._codes) - len(self._keys)))[::-1]
        if new:
            self._keys += new
            nothing = np.full(len(new), -1, np.int32)
            self._group = np.append(self._group, np.array([_group(*key[:3]) for key in new], np.uint8))
            self._is_start = np.append(self._is_start, [key[0] == "s" for key in new])
            self._category = np.append(self._category, nothing)
            self._name = np.append(self._name, nothing)
            self._thread = np.append(self._thread, nothing)
        return np.fromiter(codes, np.int32, len(codes))

    def groups(self, codes: Int32) -> npt.NDArray[np.uint8]:
        """The `PhaseGroup` of each event."""
        return np.asarray(self._group[codes])

    def is_start(self, codes: Int32) -> npt.NDArray[np.bool_]:
        """Which events are tails of arrows."""
        return np.asarray(self._is_start[codes])

    def categories(self, codes: Int32) -> Int32:
        """Index of each event's category."""
        return self._asked(self._category, codes, lambda key: self._strings[key[1]])

    def names(self, codes: Int32) -> Int32:
        """Index of each event's name."""
        return self._asked(self._name, codes, lambda key: self._strings[key[2]])

    def threads(self, codes: Int32) -> Int32:
        """Index of each event's thread."""
        return self._asked(self._thread, codes, lambda key: self._threads[key[3], key[4]])

    def _asked(self, column: Int32, codes: Int32, index: Callable[[_Key], int]) -> Int32:
        found: Int32 = column[codes]
        unknown = found < 0
        if unknown.any():
            for code in distinct_values(codes[unknown]).tolist():
                column[code] = index(self._keys[code])
            found = column[codes]
        return found


_Key = tuple[str, str, str, Any, Any]
"""Phase, category, name, pid and tid."""
