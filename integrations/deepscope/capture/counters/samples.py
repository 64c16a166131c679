"""What was sampled of one source, and the tracks that follow from it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from deepscope.capture.counters.source import Series
from deepscope.capture.event_edits import json_bytes, microseconds
from deepscope.trace.format.counters import PREFIX
from deepscope.trace.format.header import Clock

MOST_SAMPLES = 1_200
"""Of a source; where there are more, each two become one."""
_DIGITS = 4
"""That matter of a value."""


class CounterTrack(msgspec.Struct):
    """A counter over time: each value holds until the next one."""

    name: str
    series: list[str]
    at_ns: list[int]
    """By the clock of the samples."""
    values: list[list[float | None]]
    """One a moment and series."""


class CounterSamples:
    """The readings of one source in the order of time, in two flat arrays."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = list(series)
        self._at = array("q")
        self._read = array("d")

    def __len__(self) -> int:
        return len(self._at)

    def add(self, at_ns: int, values: Sequence[float]) -> None:
        """One reading of all series."""
        read = array("d", values)  # all of them or, where one is no number, none
        if len(read) == len(self._series):
            self._at.append(at_ns)
            self._read.extend(read)

    def thin(self) -> None:
        """Each two readings become one: of totals the first, so that all growth is kept; of others the mean.

        The last one stays as it is.
        """
        width, count = len(self._series), len(self._at)
        if not count:  # a sensor that could be opened and never be read
            return
        at, read = array("q"), array("d")
        for row in range(0, count - 1, 2):
            at.append(self._at[row])
            here, there = self._row(row), self._row(row + 1 if row + 2 < count else row)
            for series, first, second in zip(self._series, here, there, strict=True):
                read.append(first if series.is_total else _mean(first, second))
        at.append(self._at[-1])
        read.extend(self._read[-width:])
        self._at, self._read = at, read

    def _row(self, row: int) -> Sequence[float]:
        width = len(self._series)
        return self._read[row * width : (row + 1) * width]

    def tracks(self) -> list[CounterTrack]:
        """The tracks that tell something; nothing where there are not two readings."""
        if len(self._at) < 2:
            return []
        columns = [self._column(place) for place in range(len(self._series))]
        found = []
        by_track = sorted(range(len(columns)), key=lambda place: self._series[place].track)
        for name, places in groupby(by_track, key=lambda place: self._series[place].track):
            readable = [place for place in places if self._tells(place, columns[place])]
            if readable:
                found.append(self._track(name, readable, columns))
        return found

    def _tells(self, place: int, values: Sequence[float]) -> bool:
        series = self._series[place]
        may_vanish = series.is_total or series.may_vanish
        return any(not math.isnan(value) and (value or not may_vanish) for value in values)

    def _track(self, name: str, places: Sequence[int], columns: Sequence[Sequence[float]]) -> CounterTrack:
        """Moments at which nothing changes are left out, but for the last one: it tells how far the track goes."""
        rows = list(zip(*(columns[place] for place in places), strict=True))
        kept = [row for row in range(len(rows)) if row in (0, len(rows) - 1) or rows[row] != rows[row - 1]]
        return CounterTrack(
            name=name,
            series=[self._series[place].name for place in places],
            at_ns=[self._at[row] for row in kept],
            values=[[None if math.isnan(value) else _shorter(value) for value in rows[row]] for row in kept],
        )

    def _column(self, place: int) -> list[float]:
        """The values by moment. Of a total its growth in a second up to the next moment; the last one repeats."""
        series = self._series[place]
        read = self._read[place :: len(self._series)]
        if not series.is_total:
            return [value * series.scale for value in read]
        rates = [self._rate(series, read, row, row + 1) for row in range(len(read) - 1)]
        # The last stretch ends when the window does: in a few milliseconds one tick looks like all cores at work.
        if len(rates) > 1 and 2 * (self._at[-1] - self._at[-2]) < self._at[-2] - self._at[-3]:
            both = self._rate(series, read, len(read) - 3, len(read) - 1)
            if not math.isnan(rates[-1] + rates[-2]):
                rates[-2:] = both, both
        return [*rates, rates[-1]]

    def _rate(self, series: Series, read: Sequence[float], first: int, last: int) -> float:
        seconds = (self._at[last] - self._at[first]) / 1e9
        growth = read[last] - read[first]
        # What a counter loses when it wraps or starts anew is not known.
        is_known = growth >= 0 and seconds > 0
        return min(growth * series.scale / seconds, series.most) if is_known else math.nan


def _mean(first: float, second: float) -> float:
    return second if math.isnan(first) else first if math.isnan(second) else (first + second) / 2


def _shorter(value: float) -> float:
    """The value with as many digits as matter: whole numbers stay whole."""
    if not math.isfinite(value):
        return 0.0
    if abs(value) >= 10**_DIGITS:
        return float(round(value))
    return float(f"{value:.{_DIGITS}g}")


def counter_events(tracks: Sequence[CounterTrack], pid: int, clock: Clock, base_ns: int) -> Iterator[bytes]:
    """A counter event (`ph: C`) a moment and track, its series among the arguments.

    Args:
        tracks: by the host's clock.
        pid: of the process that recorded: viewers keep counters by process.
        clock: how the trace's times stand to the host's.
        base_ns: the trace's `baseTimeNanoseconds`.
    """
    to_trace = -clock.offset_ns - base_ns
    for track in tracks:
        head = b'{"ph":"C","name":%s,"pid":%d,"tid":0,"ts":' % (json_bytes(PREFIX + track.name), pid)
        keys = [json_bytes(series) for series in track.series]
        for at_ns, values in zip(track.at_ns, track.values, strict=True):
            args = b",".join(
                key + b":" + json_bytes(int(value) if value.is_integer() else value)
                for key, value in zip(keys, values, strict=True)
                if value is not None
            )
            ts_ns = at_ns + to_trace
            if args and ts_ns >= 0:
                yield head + microseconds(ts_ns) + b',"args":{' + args + b"}}"
