"""A timeline for Perfetto, as trace events in JSON: tracks by line, phases, counters.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; of it only complete events (`X`),
counters (`C`) and names (`M`) are used. Times are microseconds since the first event, with three decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from deepscope.analysis.analysis import Analysis
from deepscope.report.exports.timeline import Counter, Timeline, TrackGroup, timeline_of
from deepscope.store.analyses import rank_of

LIMIT = 200_000
"""Slices of CPU tracks, and as many of device tracks, over all ranks: what a browser opens at ease."""


def timelines(analyses: Iterable[Analysis], ranks: int = 1, limit: int = LIMIT) -> list[Timeline]:
    """The timelines of the traces of so many ranks."""
    return [timeline_of(one, rank_of(one), max(limit // max(ranks, 1), 1)) for one in analyses]


def perfetto_text(shown: list[Timeline]) -> Iterator[str]:
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
    figures = [(json.dumps(name), values.tolist()) for name, values in slices.figures.items() if name != "line"]
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


def _samples(counter: Counter, pid: int, shift: int) -> Iterator[str]:
    name = json.dumps(counter.name)
    series = {word: values.tolist() for word, values in counter.series.items()}
    for row, at in enumerate(counter.at_ns.tolist()):
        values = ",".join(f"{json.dumps(word)}:{numbers[row]}" for word, numbers in series.items())
        yield f'{{"ph":"C","pid":{pid},"tid":0,"ts":{_micros(at + shift)},"name":{name},"args":{{{values}}}}}'


def _meta(name: str, pid: int, tid: int, arguments: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": arguments}, separators=(",", ":"))


def _micros(ns: int) -> str:
    """Nanoseconds as microseconds, exactly: a float would round."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
