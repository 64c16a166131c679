"""What an event says beside its times: phase, category, name, process and thread. A trace has few combinations.

One look-up an event tells all that hangs on them; whole columns do the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_values
from deepscope.trace.kineto.arguments import Interned, ints
from deepscope.trace.kineto.decode import FAILURES, MEMORY_FIELDS, NOTHING, Args, Buffer, Event
from deepscope.trace.model import CounterEvents, Flows, Int32, Int64, MemoryEvents


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

    def __init__(self, strings: Interned, threads: Interned) -> None:
        self._strings = strings
        self._threads = threads
        self._codes = Interned()
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


class MomentColumns:
    """Gathers rows, and yields each table once at the end; times are in nanoseconds."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Int64]] = defaultdict(list)
        self._samples: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []

    def add_arrows(self, events: list[Event], times: Int64, threads: Int32, is_start: Any, *, launch: bool) -> None:
        """Halves of arrows; `is_start` has shape (n,)."""
        if events:
            columns = (ints([e.id for e in events]), is_start.astype(np.int64), times, threads)
            self._parts["launch_arrows" if launch else "flows"].append(np.stack(columns, axis=1))

    def add_memory(self, args: list[Args], times: Int64, threads: Int32) -> None:
        """`[memory]` instants."""
        if args:
            fields = [ints(list(map(attrgetter(name), args))) for name in MEMORY_FIELDS]
            self._parts["memory"].append(np.stack((times, threads, *fields), axis=1))

    def add_counters(self, names: list[str], times: Int64, text: Buffer, strings: Interned) -> None:
        """Samples of counters; `text` is the JSON array in which they stand."""
        rows = [
            (ts, strings[name], strings[series], value)
            for name, ts, samples in zip(names, times.tolist(), _counter_values(text), strict=True)
            for series, value in samples.items()
        ]
        self._parts["counters"].append(np.array([row[:3] for row in rows], np.int64).reshape(-1, 3))
        self._samples.append(np.array([row[3] for row in rows], np.float64))

    def join(self, other: MomentColumns, strings: Int32, threads: Int32) -> None:
        """Take all of `other`, whose strings and threads have these indexes here."""
        for name, parts in other._parts.items():
            rows = np.concatenate(parts)
            if name == "counters":
                rows[:, 1:] = strings[rows[:, 1:]]
            else:
                rows[:, _THREAD[name]] = threads[rows[:, _THREAD[name]]]
            self._parts[name].append(rows)
        self._samples += other._samples

    def flows(self) -> Flows:
        """The forward-to-backward arrows."""
        return self._flows("flows")

    def launch_arrows(self) -> Flows:
        """Ascend's arrows from calls to work."""
        return self._flows("launch_arrows")

    def _flows(self, table: str) -> Flows:
        rows = self._table(table, 4)
        return Flows(id=rows[0], is_start=rows[1] == 1, ts_ns=rows[2], thread=rows[3].astype(np.int32))

    def memory(self) -> MemoryEvents:
        """The allocations and releases."""
        rows = self._table("memory", 8)
        return MemoryEvents(
            ts_ns=rows[0],
            thread=rows[1].astype(np.int32),
            address=rows[2],
            size_bytes=rows[3],
            total_allocated_bytes=rows[4],
            total_reserved_bytes=rows[5],
            device_type=rows[6].astype(np.int32),
            device_id=rows[7].astype(np.int32),
        )

    def counters(self) -> CounterEvents:
        """The counters' samples."""
        rows = self._table("counters", 3)
        return CounterEvents(
            ts_ns=rows[0],
            name=rows[1].astype(np.int32),
            series=rows[2].astype(np.int32),
            value=np.concatenate([np.zeros(0), *self._samples]),
        )

    def _table(self, name: str, width: int) -> Int64:
        """The columns of a table, each of them in one piece; shape (width, n)."""
        parts = self._parts.pop(name, [])
        return np.ascontiguousarray((np.concatenate(parts) if parts else np.zeros((0, width), np.int64)).T)


_THREAD = {"memory": 1, "flows": 3, "launch_arrows": 3}
"""The column of the thread."""


class _Values(msgspec.Struct, gc=False):
    ph: str = ""
    args: msgspec.Raw = NOTHING


_decode_values = msgspec.json.Decoder(list[_Values]).decode


def _counter_values(piece: Buffer) -> Iterator[dict[str, float]]:
    """The samples of each counter event (`ph: C`) in `piece`, in order."""
    for event in _decode_values(piece):
        if event.ph != "C":
            continue
        try:
            args = msgspec.json.decode(event.args)
        except FAILURES:
            args = None
        samples = args.items() if isinstance(args, dict) else ()
        yield {k: float(v) for k, v in samples if isinstance(v, (int, float)) and abs(v) < 1e300}
