"""Events gathered into columns, piece by piece, so that no Python object stays for each of them."""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_HALF_EVEN, Decimal, DecimalException
from itertools import compress
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.trace.kineto.arguments import Arguments, Interned
from deepscope.trace.kineto.decode import NOTHING, Args, Buffer, Event
from deepscope.trace.kineto.heads import Heads, MomentColumns, PhaseGroup
from deepscope.trace.model import Int32, Int64


class _Times(msgspec.Struct, gc=False):
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING


_decode_times = msgspec.json.Decoder(list[_Times]).decode

# In [2**42, 2**43) doubles stand 2**-10 µs apart, so three decimals come back exactly; above they do not.
_EXACT_BELOW_US = float(2**43)
_MAX_NS = 2**62
_BAD_TIME = -(2**63)
_NO_DURATION = (b"", b"null")


def nanoseconds(values: list[Any]) -> Int64 | None:
    """Decoded microseconds as nanoseconds; None if only the text has them exactly (`exact_times`)."""
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if not (np.abs(array) < _EXACT_BELOW_US).all():
        whole_numbers = np.array(values)
        if whole_numbers.dtype == np.int64 and (np.abs(whole_numbers) < _MAX_NS // 1000).all():
            return whole_numbers * 1000
        return None
    # Whole and fraction are scaled apart: the product of the whole would round a second time.
    whole = np.floor(array)
    return whole.astype(np.int64) * 1000 + np.rint((array - whole) * 1000).astype(np.int64)


def exact_times(piece: Buffer) -> tuple[Int64, Int64, npt.NDArray[np.bool_]]:
    """Starts and durations (ns) of the events in `piece` from their text, and which have times that can be used."""
    times = _decode_times(piece)
    start = np.fromiter((_exact_ns(bytes(t.ts)) for t in times), np.int64, len(times))
    durations = (bytes(t.dur) for t in times)
    duration = np.fromiter((0 if text in _NO_DURATION else _exact_ns(text) for text in durations), np.int64, len(times))
    good = (start != _BAD_TIME) & (duration != _BAD_TIME)
    return np.where(good, start, 0), np.where(good, duration, 0), good


def _exact_ns(text: bytes) -> int:
    whole, _, fraction = text.strip(b'" \t\r\n').partition(b".")
    if len(fraction) <= 3 and len(whole) <= 16 and whole.isdigit() and (not fraction or fraction.isdigit()):
        result = int(whole) * 1000 + int(fraction.ljust(3, b"0"))
    else:
        try:
            value = Decimal(text.strip(b'" \t\r\n').decode("ascii")) * 1000
            if not value.is_finite() or value.adjusted() > 18:
                return _BAD_TIME
            result = int(value.to_integral_value(ROUND_HALF_EVEN))
        except (DecimalException, UnicodeDecodeError):
            return _BAD_TIME
    return result if abs(result) < _MAX_NS else _BAD_TIME


Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_ABSENT = Args()


class EventColumns:
    """Gathers pieces (`add`) and what other processes gathered (`join`), and yields each table once at the end."""

    def __init__(self) -> None:
        self.strings = Interned()
        self.threads = Interned()
        self.arguments = Arguments(self.strings)
        self.moments = MomentColumns()
        self.process_names: dict[Any, str] = {}
        self.thread_names: dict[tuple[Any, Any], str] = {}
        self.count = 0
        self.read_events = 0
        """Events of any phase behind a part made elsewhere; set by its maker."""
        self.left_out = 0
        """Complete events without a usable time."""
        self.has_halves = False
        """Whether events came in two halves (`ph: B` and `E`): parts decoded apart would not join these."""
        self._heads = Heads(self.strings, self.threads)
        self._begun: dict[tuple[Any, Any], list[tuple[Event, int]]] = defaultdict(list)
        self._parts: dict[str, list[Array]] = defaultdict(list)

    def __getstate__(self) -> dict[str, Any]:
        """What `join` needs, for another process."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_heads", "_begun")}

    def add(self, events: list[Event], text: Buffer) -> None:
        """Take the events of one piece; `text` is the JSON array that they were decoded from."""
        heads = self._heads.of(events)
        groups = self._heads.groups(heads)
        complete, others = groups == PhaseGroup.COMPLETE, groups > PhaseGroup.COMPLETE
        whole, rest = _chosen(events, complete), _chosen(events, others)
        starts = nanoseconds([e.ts for e in whole])
        durations = nanoseconds([e.dur if e.dur is not None else 0 for e in whole])
        instants = nanoseconds([e.ts if e.ts is not None else 0 for e in rest])
        if starts is None or durations is None or instants is None:
            starts, durations, good = exact_times(text)
            instants = starts[others]
            self.left_out += int((complete & ~good).sum())
            complete &= good
            starts, durations, whole = starts[complete], durations[complete], _chosen(events, complete)
        self._add_complete(whole, heads[complete], starts, durations)
        if rest:
            self._add_others(rest, heads[others], groups[others], instants, text)

    def _add_complete(self, events: list[Event], heads: Int32, starts: Int64, durations: Int64) -> None:
        parts = self._parts
        parts["start_ns"].append(starts)
        # Older recorders wrote negative durations for events that the clock's adjustment turned round.
        parts["duration_ns"].append(np.maximum(durations, 0))
        names, categories = self._heads.names(heads), self._heads.categories(heads)
        parts["name"].append(names)
        parts["category"].append(categories)
        parts["thread"].append(self._heads.threads(heads))
        for code in np.flatnonzero(np.bincount(categories)).tolist():
            of_category = categories == code
            rows = np.flatnonzero(of_category)
            category = events[rows[0]].cat
            if self.arguments.has_any(category):
                chosen = _chosen(events, of_category)
                self.arguments.add(category, [e.args or _ABSENT for e in chosen], names[rows], rows + self.count)
        self.count += len(events)

    def _add_others(
        self, events: list[Event], heads: Int32, groups: npt.NDArray[np.uint8], times: Int64, text: Buffer
    ) -> None:
        """Events of other phases, in the order of the file within each group."""
        present = np.flatnonzero(np.bincount(groups)).tolist()
        for group in present:
            rows = groups == group
            self._add_group(PhaseGroup(group), _chosen(events, rows), heads[rows], times[rows], text)

    def _add_group(self, group: PhaseGroup, events: list[Event], heads: Int32, times: Int64, text: Buffer) -> None:
        if group in (PhaseGroup.FLOW, PhaseGroup.LAUNCH):
            threads, is_start = self._heads.threads(heads), self._heads.is_start(heads)
            self.moments.add_arrows(events, times, threads, is_start, launch=group == PhaseGroup.LAUNCH)
        elif group == PhaseGroup.MEMORY:
            has_args = np.array([e.args is not None for e in events], np.bool_)
            args = [e.args or _ABSENT for e in _chosen(events, has_args)]
            self.moments.add_memory(args, times[has_args], self._heads.threads(heads[has_args]))
        elif group == PhaseGroup.COUNTER:
            self.moments.add_counters([e.name for e in events], times, text, self.strings)
        elif group == PhaseGroup.METADATA:
            for event in events:
                self._add_metadata(event, event.args or _ABSENT)
        elif group == PhaseGroup.HALF:
            self._add_halves(events, times)

    def _add_halves(self, events: list[Event], times: Int64) -> None:
        """Brings each end together with the last begin on its thread that has none yet."""
        self.has_halves = True
        joined: list[Event] = []
        starts, ends = [], []
        for event, time in zip(events, times.tolist(), strict=True):
            begun = self._begun[event.pid, event.tid]
            if event.ph == "B":
                begun.append((event, time))
            elif begun:
                first, start = begun.pop()
                first.args = first.args or event.args
                joined.append(first)
                starts.append(start)
                ends.append(time)
        start_ns, end_ns = np.array(starts, np.int64), np.array(ends, np.int64)
        self._add_complete(joined, self._heads.of_joined(joined), start_ns, end_ns - start_ns)

    def _add_metadata(self, event: Event, args: Args) -> None:
        if not isinstance(args.name, str):
            return
        if event.name == "process_name":
            self.process_names[event.pid] = args.name
        elif event.name == "thread_name":
            self.thread_names[event.pid, event.tid] = args.name

    def join(self, other: EventColumns) -> None:
        """Take all of `other`, which gathered the events behind these; it is used up."""
        strings = self.strings.codes(other.strings)
        threads = self.threads.codes(other.threads)
        self.process_names |= other.process_names
        self.thread_names |= other.thread_names
        indexes = {"name": strings, "category": strings, "thread": threads}
        for name, parts in other._parts.items():
            values = np.concatenate(parts)
            self._parts[name].append(indexes[name][values] if name in indexes else values)
        self.arguments.join(other.arguments, strings, self.count)
        self.moments.join(other.moments, strings, threads)
        self.count += other.count
        self.left_out += other.left_out

    def column(self, name: str, dtype: npt.DTypeLike = np.int64) -> Array:
        """One column that every complete event has; its parts are let go."""
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    def of_collectives(self) -> tuple[Int64, dict[str, Int64]]:
        """What some events tell of collectives; its parts are let go."""
        return self.arguments.of_collectives()

    def argument(self, name: str, dtype: npt.DTypeLike = np.int64) -> Array:
        """One column that some events have, -1 for the others (texts: indexes into `strings`); its parts are let go."""
        return self.arguments.column(name, self.count, dtype)


def _chosen(events: list[Event], rows: Mask) -> list[Event]:
    return events if rows.all() else list(compress(events, rows.tobytes()))
