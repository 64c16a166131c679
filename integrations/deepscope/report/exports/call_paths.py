"""Call paths in the files of flame graphs: folded stacks, speedscope, pprof."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from deepscope.printable import printable
from deepscope.records import PartKey, Profile
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import short_path, short_place
from deepscope.report.call_paths import Depth, FlameMetric, Metric, Stack, stacks
from deepscope.report.event_names import measured_words, place_name


def folded_report(profile: Profile, depth: Depth = "kernel", metric: Metric = "device") -> str:
    """One line a call path with time: `main (train.py:3);forward (net.py:9);aten::mm 1200`."""
    root = profile.trace.project_root
    names = [_folded_frame(f"{line.function} ({short_place(line.file, line.line, root)})") for line in profile.lines]
    names.append(NO_LINE)
    places = [_folded_frame(_place(place, root)) for place in profile.places]
    rows = []
    for stack in stacks(profile, depth):
        if time := stack.time_ns(metric):
            frames = [names[line] for line in stack.lines] + [places[place] for place in stack.places]
            rows.append(f"{';'.join(frames)} {time}\n")
    return "".join(rows)


def _place(place: PartKey, root: str) -> str:
    where = f" ({short_place(place.file, place.line, root)})" if place.kind == "library" and place.line else ""
    return place_name(place.kind, place.name) + where


def _folded_frame(name: str) -> str:
    return printable(name).replace(";", ",")


SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_report(profile: Profile, depth: Depth = "kernel", metric: Metric | None = None) -> str:
    """Sampled profiles of device time (all, and that of backward alone) and of CPU time, one sample a call path.

    With a `metric` it is one of device time (of backward beside it) or of CPU time alone.
    """
    frames: list[dict[str, Any]] = [
        {"name": printable(line.function), "file": line.file, "line": line.line} for line in profile.lines
    ]
    frames.append({"name": NO_LINE})
    frames += map(_speedscope_frame, profile.places)
    device = measured_words(profile)
    views: list[tuple[str, FlameMetric]] = [
        (device, "device"),
        (f"{device}, backward", "backward"),
        ("CPU time of the lines", "cpu"),
    ]
    if metric is not None:
        views = views[:2] if metric == "device" else views[2:]
    found = list(stacks(profile, depth))
    profiles = [_sampled(found, len(profile.lines), name, shown) for name, shown in views]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "exporter": "deepscope",
            "name": printable(short_path(profile.trace.path)),
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": [profiles[0], *(one for one in profiles[1:] if one["samples"])],
        }
    )


def _speedscope_frame(place: PartKey) -> dict[str, Any]:
    where = {"file": place.file, "line": place.line} if place.file and place.line else {}
    return {"name": place_name(place.kind, place.name), **where}


def _sampled(found: list[Stack], no_line: int, name: str, metric: FlameMetric) -> dict[str, Any]:
    """`no_line` is the frame of work that reached no line; those of places stand after it."""
    chosen = [stack for stack in found if stack.time_ns(metric)]
    weights = [stack.time_ns(metric) for stack in chosen]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [
            [*(no_line if line < 0 else line for line in stack.lines), *(no_line + 1 + place for place in stack.places)]
            for stack in chosen
        ],
        "weights": weights,
    }


_TYPES = (("device", "nanoseconds"), ("backward", "nanoseconds"), ("cpu", "nanoseconds"))
"""Values of a sample: device time, the part of it in backward, the line's own time on the CPU."""


def pprof_profile(profile: Profile, depth: Depth = "kernel", metric: Metric = "device") -> bytes:
    """`profile.proto`, compressed with gzip: one sample a call path; `metric` is what viewers show first.

    https://github.com/google/pprof/blob/main/proto/profile.proto. The message is written here and not through protobuf:
    it is numbers and bytes with a length in front, and the library, whose generated code fits only some of its
    versions, would be more to keep up with than these lines. Tests decode it with protobuf.
    """
    frames = _Frames()
    lines = [frames.location(printable(one.function), one.file, one.line) for one in profile.lines]
    lines.append(frames.location(NO_LINE, "", 0))  # the place of -1
    places = [frames.location(place_name(one.kind, one.name), one.file, one.line) for one in profile.places]
    message = bytearray()
    for name, unit in _TYPES:
        message += _inner(1, _number(1, frames.string(name)) + _number(2, frames.string(unit)))
    for stack in stacks(profile, depth):
        path = [lines[line] for line in stack.lines] + [places[place] for place in stack.places]
        values = (stack.device_ns, stack.backward_device_ns, stack.cpu_ns)
        message += _inner(2, _packed(1, reversed(path)) + _packed(2, values))
    message += frames.messages
    message += _number(9, _recorded_ns(profile.trace.recorded_at)) + _number(10, profile.totals.wall_ns)
    comment = frames.string(f"DeepScope: {printable(profile.trace.path)} on {printable(profile.trace.device)}")
    message += _packed(13, [comment]) + _number(14, frames.string(metric))
    for text in frames.strings:  # the last, since all of them are known only here
        message += _inner(6, text.encode("utf-8", "backslashreplace"))
    return gzip.compress(bytes(message), mtime=0)


class _Frames:
    """Locations, functions and words, each once; ids begin with 1, words with the empty one."""

    def __init__(self) -> None:
        self.messages = bytearray()
        self.strings: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[tuple[int, int], int] = {}

    def string(self, text: str) -> int:
        """The index of a word."""
        return self.strings.setdefault(text, len(self.strings))

    def location(self, function: str, file: str, line: int) -> int:
        """The id of a place."""
        key = self._function(function, printable(file)), line
        known = self._locations.get(key)
        if known is None:
            known = self._locations[key] = len(self._locations) + 1
            of_line = _number(1, key[0]) + _number(2, line)
            self.messages += _inner(4, _number(1, known) + _inner(4, of_line))
        return known

    def _function(self, name: str, file: str) -> int:
        known = self._functions.get((name, file))
        if known is None:
            known = self._functions[name, file] = len(self._functions) + 1
            word = self.string(name)
            body = _number(1, known) + _number(2, word) + _number(3, word) + _number(4, self.string(file))
            self.messages += _inner(5, body)
        return known


def _recorded_ns(recorded_at: str) -> int:
    """Nanoseconds since the epoch; 0 where the trace does not say."""
    try:
        return max(int(datetime.fromisoformat(recorded_at).timestamp() * 10**9), 0)
    except (ValueError, OverflowError, OSError):
        return 0


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number as 64 bits of two's complement.

    https://protobuf.dev/programming-guides/encoding/
    """
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _inner(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _inner(field, b"".join(map(_varint, values)))
