"""Events gathered into columns, piece by piece, so that no Python object stays for each of them."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.decode import (
    Args,
    Buffer,
    Event,
    counter_values,
    exact_times,
    nanoseconds,
)
from deepscope.trace.model import CounterEvents, Flows, Int32, Int64, MemoryEvents

__all__ = ["QUEUE_OFFSET", "Columns", "Table", "as_int"]

Array = npt.NDArray[Any]

_ABSENT = Args()
_NO_TEXT = b""
_GROUPS = {
    "B": "half",
    "E": "half",
    "s": "arrow",
    "f": "arrow",
    "M": "metadata",
    "C": "counter",
    "i": "instant",
    "I": "instant",
}
"""Phases other than complete events that are read, and which are read alike."""
# Which arrows are kept, and in which table; `ac2g` and `async` say no more than the correlation does.
_FLOWS = {"fwdbwd": "flows", "forward_backward": "flows", "HostToDevice": "launch_arrows"}
QUEUE_OFFSET = 1 << 61
"""Added to the `correlation_id` of torch_npu's enqueue and dequeue: CANN's connections are numbered apart from them."""


class Table(dict[Any, int]):
    """Value → index, in order of first sight."""

    def __missing__(self, value: Any) -> int:
        index = self[value] = len(self)
        return index

    def codes(self, values: Iterable[Any]) -> Int32:
        """The index of each value."""
        codes = [self[value] for value in values]
        return np.fromiter(codes, np.int32, len(codes))


def as_int(value: object) -> int:
    """An id, whatever its type: words become a hash, numbers beyond 64 bits wrap, -1 for nothing."""
    if isinstance(value, str):
        is_number = len(value) < 40 and value.lstrip("-").isdecimal()
        value = int(value) if is_number else zlib.crc32(value.encode("utf-8", "replace"))
    elif isinstance(value, float):
        value = int(value) if abs(value) < 2.0**63 else -1
    if not isinstance(value, int):
        return -1
    if not -(2**63) <= value < 2**64:
        return -1
    return int(value) if value < 2**63 else int(value) - 2**64


def _ints(values: list[Any]) -> Int64:
    if not values:
        return np.zeros(0, np.int64)
    with suppress(ValueError):  # lists of different lengths among them
        array = np.array(values)
        if array.dtype == np.int64 and array.ndim == 1:
            return array
    return np.fromiter(map(as_int, values), np.int64, len(values))


class Columns:
    """Gathers pieces (`add`) and what other processes gathered (`join`), and yields each table once at the end."""

    def __init__(self) -> None:
        self.strings = Table()
        self.threads = Table()
        self.process_names: dict[Any, str] = {}
        self.thread_names: dict[tuple[Any, Any], str] = {}
        self.count = 0
        self.read_events = 0
        """Events of any phase behind a part made elsewhere; set by its maker."""
        self.left_out = 0
        """Complete events without a usable time."""
        self.has_halves = False
        """Whether events came in two halves (`ph: B` and `E`), which parts decoded apart would not bring together."""
        self._begun: dict[tuple[Any, Any], list[tuple[Event, int]]] = defaultdict(list)
        self._pairs: list[tuple[Event, int, int]] = []
        self._places = Table()
        self._place_codes: list[tuple[int, int]] = []
        self._fields: dict[int, tuple[str, ...]] = {}
        """Arguments that are read, by the category's code."""
        self._raw_texts = Table({_NO_TEXT: 0})
        self._raw_codes: list[int] = []
        self._parts: dict[str, list[Array]] = defaultdict(list)
        self._sparse: dict[str, list[tuple[Int64, Array]]] = defaultdict(list)

    def add(self, events: list[Event], text: Buffer) -> None:
        """Take the events of one piece; `text` is the JSON array that they were decoded from."""
        complete = [e for e in events if e.ph == "X"]
        others = [e for e in events if e.ph != "X"] if len(complete) < len(events) else []
        starts = nanoseconds([e.ts for e in complete])
        durations = nanoseconds([e.dur if e.dur is not None else 0 for e in complete])
        instants = nanoseconds([e.ts if e.ts is not None else 0 for e in others])
        if starts is None or durations is None or instants is None:
            starts, durations, good = exact_times(text)
            is_complete = np.array([e.ph == "X" for e in events], np.bool_)
            instants = starts[~is_complete]
            keep = is_complete & good
            self.left_out += len(complete) - int(keep.sum())
            complete = [e for e, kept in zip(events, keep.tolist(), strict=True) if kept]
            starts, durations = starts[keep], durations[keep]
        self._add_complete(complete, starts, durations)
        if others:
            self._add_others(others, instants, text)

    def _add_complete(self, events: list[Event], starts: Int64, durations: Int64) -> None:
        parts, places = self._parts, self._places
        parts["start_ns"].append(starts)
        # Older recorders wrote negative durations for events that the clock's adjustment turned round.
        parts["duration_ns"].append(np.maximum(durations, 0))
        parts["name"].append(self.strings.codes([e.name for e in events]))
        # One look-up for the three: there are few combinations.
        place = np.fromiter([places[e.cat, e.pid, e.tid] for e in events], np.int32, len(events))
        if len(places) > len(self._place_codes):
            self._add_places()
        codes = np.array(self._place_codes, np.int32).reshape(-1, 2)[place]
        categories = codes[:, 0]
        parts["category"].append(categories)
        parts["thread"].append(codes[:, 1])
        for code in np.flatnonzero(np.bincount(categories)).tolist():
            if fields := self._fields[code]:
                rows = np.flatnonzero(categories == code)
                chosen = events if len(rows) == len(events) else [events[i] for i in rows.tolist()]
                self._add_args(fields, [e.args or _ABSENT for e in chosen], rows + self.count)
        self.count += len(events)

    def _add_places(self) -> None:
        for category, pid, tid in list(self._places)[len(self._place_codes) :]:
            code = self.strings[category]
            self._place_codes.append((code, self.threads[pid, tid]))
            self._fields[code] = _ARGUMENTS.get(category, _ALL_FIELDS)

    def _add_args(self, fields: tuple[str, ...], args: list[Args], rows: Int64) -> None:
        for field in fields:
            values = _READERS[field](args)
            if field == "call_stack":
                strings = self.strings
                self._put_codes(
                    field,
                    [strings[text if isinstance(text, str) else str(text)] if text else -1 for text in values],
                    rows,
                )
            elif field in _TEXT_FIELDS:
                self._put_codes(field, self._codes_of_raw(values), rows)
            else:
                column = _ints(values)
                if (column != -1).any():
                    self._sparse[field].append((rows, column))

    def _codes_of_raw(self, values: list[Any]) -> list[int]:
        # JSON holds no NUL; one join costs half of what so many copies do.
        texts = b"\0".join(values).split(b"\0")
        if len(texts) != len(values):
            texts = [bytes(text) for text in values]
        table = self._raw_texts
        return [table[text] for text in texts]

    def _put_codes(self, field: str, codes: list[int], rows: Int64) -> None:
        column = np.fromiter(codes, np.int32, len(codes))
        known = column > 0 if field != "call_stack" else column >= 0
        if known.any():
            self._sparse[field].append((rows[known], column[known]))

    def _add_others(self, events: list[Event], times: Int64, text: Buffer) -> None:
        groups: dict[str | None, list[int]] = defaultdict(list)
        for row, event in enumerate(events):
            groups[_GROUPS.get(event.ph)].append(row)
        for row in groups["half"]:
            self._begin_or_end(events[row], int(times[row]))
        for row in groups["metadata"]:
            self._add_metadata(events[row], events[row].args or _ABSENT)
        self._add_arrows([events[row] for row in groups["arrow"]], times[groups["arrow"]])
        rows = [row for row in groups["instant"] if events[row].name == "[memory]" and events[row].args]
        self._add_memory([events[row] for row in rows], times[rows])
        if rows := groups["counter"]:
            self._add_counters([(int(times[row]), self.strings[events[row].name]) for row in rows], text)
        self._add_pairs()

    def _threads_of(self, events: list[Event]) -> Int32:
        threads = self.threads
        return np.fromiter([threads[e.pid, e.tid] for e in events], np.int32, len(events))

    def _add_arrows(self, events: list[Event], times: Int64) -> None:
        tables = [_FLOWS.get(e.cat) for e in events]
        for table in dict.fromkeys(tables):
            if table is not None:
                rows = [row for row, name in enumerate(tables) if name == table]
                chosen = [events[row] for row in rows]
                starts = np.fromiter([e.ph == "s" for e in chosen], np.int64, len(rows))
                columns = (_ints([e.id for e in chosen]), starts, times[rows], self._threads_of(chosen))
                self._parts[table].append(np.stack(columns, axis=1))

    def _add_memory(self, events: list[Event], times: Int64) -> None:
        if events:
            args = [e.args or _ABSENT for e in events]
            values = [_ints(read(args)) for read in _MEMORY_READERS]
            self._parts["memory"].append(np.stack((times, self._threads_of(events), *values), axis=1))

    def _begin_or_end(self, event: Event, time: int) -> None:
        """Chrome's other way to write a complete event: `ph: B`, then `ph: E` on the same thread."""
        self.has_halves = True
        begun = self._begun[event.pid, event.tid]
        if event.ph == "B":
            begun.append((event, time))
        elif begun:
            first, start = begun.pop()
            first.args = first.args or event.args
            self._pairs.append((first, start, time))

    def _add_pairs(self) -> None:
        if self._pairs:
            events, starts, ends = zip(*self._pairs, strict=True)
            self._pairs.clear()
            start = np.array(starts, np.int64)
            self._add_complete(list(events), start, np.array(ends, np.int64) - start)

    def _add_counters(self, events: list[tuple[int, int]], text: Buffer) -> None:
        rows = [
            (ts, name, self.strings[series], value)
            for (ts, name), samples in zip(events, counter_values(text), strict=True)
            for series, value in samples.items()
        ]
        self._parts["counter_keys"].append(np.array([row[:3] for row in rows], np.int64).reshape(-1, 3))
        self._parts["counter_values"].append(np.array([row[3] for row in rows], np.float64))

    def _add_metadata(self, event: Event, args: Args) -> None:
        if not isinstance(args.name, str):
            return
        if event.name == "process_name":
            self.process_names[event.pid] = args.name
        elif event.name == "thread_name":
            self.thread_names[event.pid, event.tid] = args.name

    # --- what another process gathered

    def join(self, other: Columns) -> None:
        """Take all of `other`, which gathered the events behind these; it is used up."""
        strings = self.strings.codes(other.strings)
        threads = self.threads.codes(other.threads)
        texts = self._raw_texts.codes(other._raw_texts)
        self.process_names |= other.process_names
        self.thread_names |= other.thread_names
        for name, parts in other._parts.items():
            values = np.concatenate(parts)
            if name in ("name", "category"):
                values = strings[values]
            elif name == "thread":
                values = threads[values]
            elif name == "counter_keys":
                values[:, 1:] = strings[values[:, 1:]]
            elif (column := _THREAD_COLUMNS.get(name)) is not None:
                values[:, column] = threads[values[:, column]]
            self._parts[name].append(values)
        for field, pairs in other._sparse.items():
            codes = strings if field == "call_stack" else texts
            for rows, values in pairs:
                self._sparse[field].append((rows + self.count, codes[values] if field in _TEXT_FIELDS else values))
        self.count += other.count
        self.left_out += other.left_out

    # --- the tables

    def column(self, name: str, dtype: npt.DTypeLike = np.int64) -> Array:
        """One column that every complete event has; its parts are let go."""
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    def argument(self, name: str, dtype: npt.DTypeLike = np.int64) -> Array:
        """One column that some events have, -1 for the others; its parts are let go."""
        column = np.full(self.count, -1, dtype)
        for alias in (*_ALIASES.get(name, ()), name):
            for rows, values in self._sparse.pop(alias, []):
                column[rows] = np.where(values != -1, values, column[rows])
        return column

    def raw_texts(self, name: str) -> Int32:
        """A column of JSON texts, as indices into `strings`; all strings must be in before the first call."""
        if not self._raw_codes:
            self._raw_codes = [
                self.strings[text.decode("utf-8", "replace")] if text else -1 for text in self._raw_texts
            ]
        codes = np.array([*self._raw_codes, -1], np.int32)
        result: Int32 = codes[self.argument(name, np.int32)]
        return result

    def flows(self) -> Flows:
        """The forward-to-backward arrows."""
        return self._flows("flows")

    def launch_arrows(self) -> Flows:
        """Ascend's arrows from calls to work."""
        return self._flows("launch_arrows")

    def _flows(self, table: str) -> Flows:
        rows = self._table(table, 4)
        return Flows(id=rows[:, 0], is_start=rows[:, 1] == 1, ts_ns=rows[:, 2], thread=rows[:, 3].astype(np.int32))

    def memory(self) -> MemoryEvents:
        """The allocations and releases."""
        rows = self._table("memory", 7)
        return MemoryEvents(
            ts_ns=rows[:, 0],
            thread=rows[:, 1].astype(np.int32),
            address=rows[:, 2],
            size_bytes=rows[:, 3],
            total_allocated_bytes=rows[:, 4],
            device_type=rows[:, 5].astype(np.int32),
            device_id=rows[:, 6].astype(np.int32),
        )

    def counters(self) -> CounterEvents:
        """The counters' samples."""
        rows = self._table("counter_keys", 3)
        return CounterEvents(
            ts_ns=rows[:, 0],
            name=rows[:, 1].astype(np.int32),
            series=rows[:, 2].astype(np.int32),
            value=self.column("counter_values", np.float64),
        )

    def _table(self, name: str, width: int) -> Int64:
        parts = self._parts.pop(name, [])
        table: Int64 = np.ascontiguousarray(np.concatenate(parts) if parts else np.zeros((0, width), np.int64))
        return table


_READERS: dict[str, Callable[[list[Args]], list[Any]]] = {
    "correlation": lambda args: [a.correlation for a in args],
    "connection_id": lambda args: [a.connection_id for a in args],
    "correlation_id": lambda args: [a.correlation_id for a in args],
    "external_id": lambda args: [a.external_id for a in args],
    "old_external_id": lambda args: [a.old_external_id for a in args],
    "sequence": lambda args: [a.sequence for a in args],
    "fwd_thread": lambda args: [a.fwd_thread for a in args],
    "device": lambda args: [a.device for a in args],
    "stream": lambda args: [a.stream for a in args],
    "npu_stream": lambda args: [a.npu_stream for a in args],
    "size_bytes": lambda args: [a.size_bytes for a in args],
    "mtia_size": lambda args: [a.mtia_size for a in args],
    "scope": lambda args: [a.scope for a in args],
    "call_stack": lambda args: [a.call_stack for a in args],
    "shapes": lambda args: [a.shapes for a in args],
    "old_shapes": lambda args: [a.old_shapes for a in args],
    "dtypes": lambda args: [a.dtypes for a in args],
    "concrete": lambda args: [a.concrete for a in args],
}
_TEXT_FIELDS = frozenset({"call_stack", "shapes", "old_shapes", "dtypes", "concrete"})

_MEMORY_READERS: tuple[Callable[[list[Args]], list[Any]], ...] = (
    lambda args: [a.address for a in args],
    lambda args: [a.memory_bytes for a in args],
    lambda args: [a.total_allocated for a in args],
    lambda args: [a.device_type for a in args],
    lambda args: [a.device_id for a in args],
)

# What today's recorders write for the commonest categories; all else is searched for every field.
_ALL_FIELDS = tuple(_READERS)
_OPERATOR_FIELDS = ("external_id", "sequence", "fwd_thread", "call_stack", "shapes", "dtypes", "concrete")
_RUNTIME_FIELDS = ("correlation", "external_id")
_DEVICE_FIELDS = ("correlation", "external_id", "device", "stream", "size_bytes")
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "cpu_op": _OPERATOR_FIELDS,
    "user_annotation": _OPERATOR_FIELDS,
    "python_function": (),
    "python_line": ("scope",),
    "python_module": ("scope",),
    "cuda_runtime": _RUNTIME_FIELDS,
    "cuda_driver": _RUNTIME_FIELDS,
    "kernel": _DEVICE_FIELDS,
    "gpu_memcpy": _DEVICE_FIELDS,
    "gpu_memset": _DEVICE_FIELDS,
}

_THREAD_COLUMNS = {"memory": 1, "flows": 3, "launch_arrows": 3}
"""Tables of several columns, and which of them says the thread."""

# Other recorders' names of a field: read where the field itself is not there.
_ALIASES = {
    "correlation": ("connection_id",),
    "external_id": ("old_external_id",),
    "stream": ("npu_stream",),
    "size_bytes": ("mtia_size",),
    "shapes": ("old_shapes",),
}
