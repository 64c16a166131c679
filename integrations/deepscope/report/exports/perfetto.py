"""A timeline for Perfetto, as trace events in JSON: tracks by line, phases, counters.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; of it only complete events (`X`),
counters (`C`) and names (`M`) are used. Times are microseconds since the first event, with three decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.work import queueing
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.tables.memory import memory_table
from deepscope.printable import printable
from deepscope.records import PHASES
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import short_place
from deepscope.report.event_names import readable
from deepscope.store.load import recorded_rank
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.model import Int64

BINS = 1000
"""Points of a counter that is sampled."""
TRACKS = 300
"""Lines with a track of their own on each device, those that cost most; the others share one."""


@dataclass(frozen=True, slots=True)
class PerfettoSlices:
    """Slices in order of track and time; arrays of shape (n,)."""

    track: Int64
    """Index into `TrackGroup.tracks`."""
    start_ns: Int64
    end_ns: Int64
    name: Int64
    """Index into `names`."""
    names: list[str]
    figures: dict[str, Int64] = field(default_factory=dict)
    """What else is said of each slice; -1 for nothing."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class PerfettoCounter:
    """A number over time; arrays of shape (m,)."""

    name: str
    at_ns: Int64
    series: str
    values: Int64


@dataclass(frozen=True, slots=True)
class TrackGroup:
    """Tracks that stand together, with the counters beside them."""

    name: str
    tracks: list[str]
    slices: PerfettoSlices
    counters: list[PerfettoCounter] = field(default_factory=list)
    left_out: int = 0
    """Slices that are not here since there were too many: the shortest."""


@dataclass(frozen=True, slots=True)
class PerfettoTimeline:
    """All that is shown of one trace, its times on its own clock."""

    rank: int
    base_ns: int
    groups: list[TrackGroup]

    @property
    def begin_ns(self) -> int:
        """The first instant; 0 where there is none."""
        return min((int(one.slices.start_ns.min()) for one in self.groups if len(one.slices)), default=0)


def timeline_of(analysis: Analysis, rank: int, limit: int) -> PerfettoTimeline:
    """The timeline of a trace (or a step of it), with at most `limit` slices on the CPU's and the devices' tracks."""
    names = _line_names(analysis)
    work = analysis.attribution.work
    devices = list(work.busy) if work.metric == "device" else []
    groups = [_training(analysis), _cpu_lines(analysis, names, limit)]
    groups += [_device_lines(analysis, device, names, limit // len(devices)) for device in devices]
    return PerfettoTimeline(rank, analysis.attribution.trace.base_ns, groups)


def _line_names(analysis: Analysis) -> list[str]:
    """Each line as `net.py:42 Net.forward`; the last is for none."""
    root = analysis.attribution.trace.header.project_root
    found = [
        printable(f"{short_place(one.file, one.line, root)} {one.function}")
        for one in analysis.attribution.scopes.locations
    ]
    return [*found, NO_LINE]


def _training(analysis: Analysis) -> TrackGroup:
    """Steps, and the phases of the training thread; memory beside them."""
    steps, phases = analysis.attribution.training.steps, analysis.phases
    shown = np.flatnonzero(analysis.extent.holds(steps.spans.start))
    inside = np.flatnonzero(analysis.extent.holds(phases.spans.start))
    phase, start, end = phases.phase[inside], phases.spans.start[inside], phases.spans.end[inside]
    goes_on = np.append(False, (phase[1:] == phase[:-1]) & (start[1:] == end[:-1]))[: len(phase)]
    first = np.flatnonzero(~goes_on)
    last = np.append(first[1:], len(phase))[: len(first)] - 1
    names = [*(f"step {number}" for number in steps.number[shown].tolist()), *PHASES]
    slices = PerfettoSlices(
        track=np.repeat([0, 1], [len(shown), len(first)]),
        start_ns=np.concatenate((steps.spans.start[shown], start[first])),
        end_ns=np.concatenate((steps.spans.end[shown], end[last])),
        name=np.concatenate((np.arange(len(shown)), phase[first] + len(shown))),
        names=names,
    )
    memory = [
        PerfettoCounter(
            f"memory {one.device} (bytes)",
            np.array([point.at_ns for point in one.curve], np.int64),
            "allocated",
            np.array([point.allocated_bytes for point in one.curve], np.int64),
        )
        for one in memory_table(analysis).devices
    ]
    return TrackGroup("Training", ["steps", "phases"], slices, memory)


def _cpu_lines(analysis: Analysis, names: list[str], limit: int) -> TrackGroup:
    """The runs of lines, a track a thread; of too many the shortest are left out."""
    attribution = analysis.attribution
    events, runs = attribution.trace.events, attribution.runs
    counted = np.flatnonzero(analysis.extent.holds(events.start_ns[runs.nodes]))
    whole = len(counted)
    if whole > limit:
        longest = np.argpartition(-events.duration_ns[runs.nodes[counted]], limit)[:limit]
        counted = counted[np.sort(longest)]
    node = runs.nodes[counted]
    used, track = distinct_places(events.thread[node])
    threads = [attribution.trace.threads[number] for number in used.tolist()]
    start, end = events.start_ns[node], events.end_ns[node]
    order = np.lexsort((-end, start, track))
    slices = PerfettoSlices(track[order], start[order], end[order], runs.location[counted][order], names)
    words = [
        printable(one.name if str(one.tid) in one.name else f"{one.name or 'thread'} {one.tid}") for one in threads
    ]
    return TrackGroup("Lines on the CPU", words, slices, left_out=whole - len(node))


def _device_lines(analysis: Analysis, device: int, names: list[str], limit: int) -> TrackGroup:
    """The work of a device, a track for each line on each stream, the line that costs most first."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    rows = np.flatnonzero(analysis.counted & (work.device == device) & work.counts)
    line = np.where(work.location[rows] < 0, len(names) - 1, work.location[rows])
    length = work.end_ns[rows] - work.start_ns[rows]
    cost = np.zeros(len(names), np.int64)
    np.add.at(cost, line, length)
    place = np.empty(len(names), np.int64)
    place[np.argsort(-cost, kind="stable")] = np.arange(len(names))
    track_place = np.minimum(place[line], TRACKS)
    stream = trace.events.stream[work.event[rows]]
    streams, stream_place = distinct_places(stream)
    used, track = distinct_places(track_place * max(len(streams), 1) + stream_place)
    by_place = [names[one] for one in np.argsort(place)[:TRACKS].tolist()]
    tracks = [
        f"{by_place[key // len(streams)] if key // len(streams) < TRACKS else '(other lines)'}, "
        f"stream {streams[key % len(streams)]}"
        for key in used.tolist()
    ]
    order = np.lexsort((work.start_ns[rows], track))
    rows, track = rows[order], track[order]
    kernel, name = distinct_places(trace.events.name[work.event[rows]])
    slices = PerfettoSlices(
        track=track,
        start_ns=work.start_ns[rows],
        end_ns=work.end_ns[rows],
        name=name,
        names=[printable(readable(trace.strings[one])) for one in kernel.tolist()],
        figures={"duration_ns": work.end_ns[rows] - work.start_ns[rows], "kernels": np.ones(len(rows), np.int64)},
    )
    return TrackGroup(
        f"Device {device} by line", tracks, _apart(_fewer(slices, limit)), _counters(analysis, work, device)
    )


def _fewer(slices: PerfettoSlices, limit: int) -> PerfettoSlices:
    """At most `limit` slices: neighbours on a track are joined, those with the smallest gaps first.

    What is joined has the sum of the durations, and says how many slices it stands for.
    """
    excess = len(slices) - limit
    if excess <= 0:
        return slices
    gap = slices.start_ns[1:] - slices.end_ns[:-1]
    can_join = slices.track[1:] == slices.track[:-1]
    candidates = np.flatnonzero(can_join)
    chosen = candidates[np.argsort(gap[candidates], kind="stable")[:excess]]
    begins = np.ones(len(slices), np.bool_)
    begins[chosen + 1] = False
    first = np.flatnonzero(begins)
    count = np.add.reduceat(slices.figures["kernels"], first)
    many = len(slices.names)
    return PerfettoSlices(
        track=slices.track[first],
        start_ns=slices.start_ns[first],
        end_ns=np.maximum.reduceat(slices.end_ns, first),
        name=np.where(count > 1, many, slices.name[first]),
        names=[*slices.names, "(several)"],
        figures={"duration_ns": np.add.reduceat(slices.figures["duration_ns"], first), "kernels": count},
    )


def _apart(slices: PerfettoSlices) -> PerfettoSlices:
    """Slices of a track that do not overlap: one that would ends where the next begins; its figures stay whole."""
    end = slices.end_ns.copy()
    same = np.flatnonzero(slices.track[1:] == slices.track[:-1])
    end[same] = np.minimum(end[same], slices.start_ns[same + 1])
    return replace(slices, end_ns=end)


def _counters(analysis: Analysis, work: OwnedWork, device: int) -> list[PerfettoCounter]:
    """How busy the device is, and how much work waits for it, in equal stretches of the window."""
    if not len(analysis.window.start):
        return []
    begin, end = int(analysis.window.start[0]), int(analysis.window.end[-1])
    edges = distinct_values(begin + (end - begin) * np.arange(BINS + 1, dtype=np.float64) // BINS).astype(np.int64)
    if len(edges) < 2:
        return []
    width = np.diff(edges)
    busy = 100 * work.busy[device].overlap_ns(edges[:-1], edges[1:]) // np.maximum(width, 1)
    queue = queueing(work)
    rows = np.flatnonzero(queue.launched & (work.device == device) & work.counts)
    place = np.searchsorted(edges, work.launch_ns[rows], "right") - 1
    inside = (place >= 0) & (place < len(width))
    deepest = np.zeros(len(width), np.int64)
    np.maximum.at(deepest, place[inside], queue.queued[rows][inside])
    return [
        PerfettoCounter(f"device {device} busy (%)", edges[:-1], "busy", busy),
        PerfettoCounter(f"device {device} queue", edges[:-1], "queued", deepest),
    ]


LIMIT = 200_000
"""Slices of CPU tracks, and as many of device tracks, over all ranks: what a browser opens at ease."""


def timelines(analyses: Iterable[Analysis], ranks: int = 1, limit: int = LIMIT) -> list[PerfettoTimeline]:
    """The timelines of the traces of so many ranks."""
    return [timeline_of(one, recorded_rank(one), max(limit // max(ranks, 1), 1)) for one in analyses]


def perfetto_text(shown: list[PerfettoTimeline]) -> Iterator[str]:
    """The file, piece by piece."""
    origin = min((one.base_ns + one.begin_ns for one in shown), default=0)
    left_out = sum(group.left_out for one in shown for group in one.groups)
    about = {"exporter": "deepscope", "origin_ns": str(origin), "slices_left_out": str(left_out)}
    yield f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":['
    first = True
    for number, one in enumerate(shown):
        prefix = f"rank {one.rank if one.rank >= 0 else number}: " if len(shown) > 1 else ""
        for place, group in enumerate(one.groups):
            pid = number * 1000 + place + 1
            for event in _events(group, pid, prefix, one.base_ns - origin):
                yield event if first else f",\n{event}"
                first = False
    yield "]}\n"


def _events(group: TrackGroup, pid: int, prefix: str, shift: int) -> Iterator[str]:
    yield _meta("process_name", pid, 0, {"name": prefix + group.name})
    yield _meta("process_sort_index", pid, 0, {"sort_index": pid})
    for number, track in enumerate(group.tracks):
        yield _meta("thread_name", pid, number + 1, {"name": track})
        yield _meta("thread_sort_index", pid, number + 1, {"sort_index": number})
    slices = group.slices
    names = [json.dumps(name) for name in slices.names]
    figures = [(json.dumps(name), values.tolist()) for name, values in slices.figures.items()]
    rows = zip(
        slices.track.tolist(), slices.start_ns.tolist(), slices.end_ns.tolist(), slices.name.tolist(), strict=True
    )
    for row, (track, start, end, name) in enumerate(rows):
        arguments = ",".join(f"{word}:{values[row]}" for word, values in figures)
        yield (
            f'{{"ph":"X","pid":{pid},"tid":{track + 1},"ts":{_micros(start + shift)},"dur":{_micros(end - start)},'
            f'"name":{names[name]},"args":{{{arguments}}}}}'
        )
    for counter in group.counters:
        yield from _samples(counter, pid, shift)


def _samples(counter: PerfettoCounter, pid: int, shift: int) -> Iterator[str]:
    name = json.dumps(counter.name)
    for at, value in zip(counter.at_ns.tolist(), counter.values.tolist(), strict=True):
        arguments = f'{{"{counter.series}":{value}}}'
        yield f'{{"ph":"C","pid":{pid},"tid":0,"ts":{_micros(at + shift)},"name":{name},"args":{arguments}}}'


def _meta(name: str, pid: int, tid: int, arguments: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": arguments}, separators=(",", ":"))


def _micros(ns: int) -> str:
    """Nanoseconds as microseconds, exactly: a float would round."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
