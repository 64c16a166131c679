"""Counters sampled beside a window, as events of its trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deepscope.capture.counters.samples import Track
from deepscope.capture.saving.splice import json_bytes, microseconds
from deepscope.trace.format.counters import PREFIX
from deepscope.trace.format.header import Clock


def counter_events(tracks: Sequence[Track], pid: int, clock: Clock, base_ns: int) -> Iterator[bytes]:
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
