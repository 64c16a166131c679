"""Events without a length as tables of several columns: allocations and releases, arrows, samples of counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from deepscope.trace.kineto.decode import FAILURES, NOTHING, Args, Buffer, Event
from deepscope.trace.kineto.values import Table, ints
from deepscope.trace.model import CounterEvents, Flows, Int32, Int64, MemoryEvents


class Moments:
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
            self._parts["memory"].append(np.stack((times, threads, *(ints(read(args)) for read in _MEMORY)), axis=1))

    def add_counters(self, names: list[str], times: Int64, text: Buffer, strings: Table) -> None:
        """Samples of counters; `text` is the JSON array in which they stand."""
        rows = [
            (ts, strings[name], strings[series], value)
            for name, ts, samples in zip(names, times.tolist(), _counter_values(text), strict=True)
            for series, value in samples.items()
        ]
        self._parts["counters"].append(np.array([row[:3] for row in rows], np.int64).reshape(-1, 3))
        self._samples.append(np.array([row[3] for row in rows], np.float64))

    def join(self, other: Moments, strings: Int32, threads: Int32) -> None:
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


_MEMORY: tuple[Callable[[list[Args]], list[Any]], ...] = (
    lambda args: [a.address for a in args],
    lambda args: [a.memory_bytes for a in args],
    lambda args: [a.total_allocated for a in args],
    lambda args: [a.total_reserved for a in args],
    lambda args: [a.device_type for a in args],
    lambda args: [a.device_id for a in args],
)

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
