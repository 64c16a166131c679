"""The timeline of a trace as columns: what is made of a trace once, and kept.

Slices stand in order of track, row and start, and are named by their place in that order. A row of a track is a *lane*;
lanes are numbered through all tracks. Slices of one lane do not overlap, but for the last row of a track with more than
`MOST_ROWS`. Times are nanoseconds from the timeline's begin. -1 stands for "none".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

import numpy as np
import numpy.typing as npt

from deepscope.dashboard.page_answer import CounterUnit
from deepscope.dashboard.timeline.answers import CodeLine, Found, LinkKind, SliceKind, Track
from deepscope.errors import OptionError
from deepscope.printable import clipped, printable
from deepscope.report.event_names import readable
from deepscope.trace.model import Int32, Int64


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in UTF-8; lone surrogates, which JSON may hold, are kept as they are."""

    content: npt.NDArray[np.uint8]
    offset: Int64
    """Where each text begins; shape (texts + 1,)."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """The table of some texts."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return cls(np.frombuffer(b"".join(parts), np.uint8), np.concatenate(([0], np.cumsum(lengths))))

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, index: int) -> str:
        content = self.content[self.offset[index] : self.offset[index + 1]]
        return content.tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        content = self.content.tobytes()
        ends = self.offset.tolist()
        for begin, end in pairwise(ends):
            yield content[begin:end].decode("utf-8", "surrogatepass")


def encodable(text: str) -> str:
    """A text as it is or, where it holds what UTF-8 cannot say, made printable."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return printable(text)
    return text


KINDS: tuple[SliceKind, ...] = get_args(SliceKind)
KIND_NUMBER: dict[str, int] = {kind: number for number, kind in enumerate(KINDS)}
WORK_KINDS: tuple[SliceKind, ...] = ("kernel", "copy", "collective")
"""Work of devices."""
LINK_KINDS: tuple[LinkKind, ...] = get_args(LinkKind)


def kind_numbers(kinds: Iterable[str]) -> list[int]:
    """Kinds as indexes into `KINDS`."""
    return [KIND_NUMBER[kind] for kind in kinds]


MOST_ROWS = 128
"""What would stand deeper stands in the last of so many rows."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """All slices; arrays of shape (n,)."""

    start: Int64
    end: Int64
    label: Int32
    """Index into `Labels`."""
    place: Int32
    """The line that owns it."""
    self_ns: Int64
    """Its time without the slices in it."""
    path: Int32
    """The call path to its line; 0 for none."""
    module: Int32
    """The innermost module around it, an index into `TimelineColumns.modules`."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Labels:
    """What slices are called, each name and kind once."""

    kind: Bytes
    """Index into `KINDS`; shape (labels,)."""
    recorded: Texts
    """Names as recorded."""
    titles: Texts
    """What is shown for each; "" where that follows from the recorded name."""


@dataclass(frozen=True, slots=True)
class Levels:
    """What each lane shows at each level of detail (`detail_levels.py`).

    At level 0 each slice stands for itself. At level k slices shorter than 2**(k - 1) ns are joined with neighbours
    that are as short and start in the same cell of that width. An entry is a slice or a group of joined ones; it is
    shown from the level `born` on, at levels below `died`. Entries stand by `died`, lane and start.
    """

    start: Int64
    end: Int64
    ref: Int32
    """A slice, or `-1 - group`."""
    offset: Int64
    """Where the entries of each `died` and lane begin; shape (levels, lanes + 1)."""
    first: Int32
    """Of a group its first slice; the others follow it. Shape (groups,), as the next ones."""
    count: Int32
    label: Int32
    """That with the most time in the group."""
    place: Int32
    """That with the most time under this label."""
    busy: Int64
    """Nanoseconds that its slices cover."""
    born: Bytes


@dataclass(frozen=True, slots=True)
class Links:
    """What led to what; arrays of shape (links,), in order of `source` and `target`."""

    kind: Bytes
    """Index into `LINK_KINDS`."""
    source: Int32
    """Slice."""
    target: Int32
    by_target: Int32
    """The links in order of `target`."""


@dataclass(frozen=True, slots=True)
class FactColumn:
    """One kind of fact about some slices."""

    key: str
    slice: Int32
    """Ascending; shape (m,)."""
    value: Int64
    """A number, or of a text its index into `TimelineColumns.texts`; shape (m,)."""


@dataclass(frozen=True, slots=True)
class OwnWork:
    """What the lines' times are sums of: parts of device slices or, without a device, of operators' own time.

    Arrays of shape (p,), in order of slice; parts of one slice lie behind each other.
    """

    slice: Int32
    offset_ns: Int64
    """Where in the slice's (own) time the part begins."""
    duration_ns: Int64
    place: Int32


@dataclass(frozen=True, slots=True)
class BusyTimes:
    """Unions of times by group: disjoint stretches, those of a group in order of time."""

    start: Int64
    end: Int64
    before: Int64
    """Nanoseconds covered before each stretch in its group."""
    offset: Int64
    """Where each group begins; shape (groups + 1,)."""


@dataclass(frozen=True, slots=True)
class CounterColumns:
    """One counter: a value from each time on. Of a device's utilisation the times are `TimelineColumns.device_busy`."""

    title: str
    unit: CounterUnit
    largest: float
    device: int
    at: Int64
    value: npt.NDArray[np.float64]
    busy_of: int = -1
    """Index into `TimelineColumns.devices` of a utilisation."""


@dataclass(frozen=True, slots=True)
class TimelineColumns:
    """The timeline of one trace."""

    end_ns: int
    begin_epoch_ns: str
    has_device: bool
    tracks: list[Track]
    track_lane: Int64
    """The first lane of each track; shape (tracks + 1,)."""
    lane_slice: Int64
    """The first slice of each lane; shape (lanes + 1,)."""
    slices: SliceColumns
    labels: Labels
    places: list[CodeLine]
    path_parent: Int32
    path_place: Int32
    modules: Texts
    levels: Levels
    links: Links
    facts: list[FactColumn]
    texts: Texts
    """What facts say."""
    operators: Int32
    """The slices that are operators, ascending; shape (k,)."""
    operator_caller: Int32
    """Position in `operators` of the operator that each was called from; shape (k,)."""
    work: OwnWork
    busy: BusyTimes
    """By track."""
    devices: list[int]
    device_busy: BusyTimes
    """By device."""
    counters: list[CounterColumns]


LONGEST = 160
"""Letters of a name that windows and lists show."""


def shown_name(labels: Labels, label: int) -> str:
    """What windows and lists show of a label."""
    return shown_text(labels.titles[label], labels.recorded[label])


def shown_text(title: str, recorded: str) -> str:
    """A title, or a recorded name where there is none, safe to print and not too long."""
    return clipped(title or readable(recorded), LONGEST)


def whole_name(labels: Labels, label: int) -> str:
    """A name as recorded, however long, safe to print."""
    return printable(labels.recorded[label])


def row_of(columns: TimelineColumns, one: int) -> tuple[int, int]:
    """The track and the row of a slice."""
    lane = int(np.searchsorted(columns.lane_slice, one, "right")) - 1
    track = int(np.searchsorted(columns.track_lane, lane, "right")) - 1
    return track, lane - int(columns.track_lane[track])


def found_slices(columns: TimelineColumns, chosen: Int64) -> list[Found]:
    """Slices with their names, in the given order."""
    slices, found = columns.slices, []
    for one in chosen.tolist():
        track, row = row_of(columns, one)
        found.append(
            Found(
                slice=one,
                track=track,
                row=row,
                start_ns=int(slices.start[one]),
                end_ns=int(slices.end[one]),
                name=shown_name(columns.labels, int(slices.label[one])),
            )
        )
    return found


def slices_within(columns: TimelineColumns, tracks: Int64, begin: int, end: int) -> Int64:
    """The slices of some tracks that lie in a stretch of time at least in part, ascending.

    Slices without a length count at their instant.
    """
    if not len(tracks):
        return np.zeros(0, np.int64)
    lanes = columns.lane_slice[columns.track_lane[tracks]], columns.lane_slice[columns.track_lane[tracks + 1]]
    slices, parts = columns.slices, []
    for first, last in zip(lanes[0].tolist(), lanes[1].tolist(), strict=True):
        start, stop = slices.start[first:last], slices.end[first:last]
        parts.append(first + np.flatnonzero((start < end) & (np.maximum(stop, start + 1) > begin)))
    return np.concatenate(parts)


_LARGEST = 1 << 61


def stretch_of(begin: int, end: int) -> tuple[int, int]:
    """A stretch of time as it was asked for, in nanoseconds, at least one, within what 64 bits hold.

    Raises:
        OptionError: it ends before it begins.
    """
    first, last = (min(max(bound, -_LARGEST), _LARGEST) for bound in (begin, end))
    if first > last:
        raise OptionError("end_ns", end, f"lies before the begin, {begin}")
    return first, max(last, first + 1)


def asked_tracks(columns: TimelineColumns, tracks: Collection[int] | None) -> Int64:
    """The tracks that were asked for, ascending; all of them for None.

    Raises:
        OptionError: there is no such track.
    """
    if tracks is None:
        return np.arange(len(columns.tracks))
    for one in tracks:
        if not 0 <= one < len(columns.tracks):
            raise OptionError("tracks", one, f"no such track; there are {len(columns.tracks)}, from 0 on")
    return np.array(sorted(set(tracks)), np.int64)
