"""Events as a trace's text has them: changed one by one, else passed on as they stand, and made of counters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deepscope.capture.counters.sampler import CounterTrack
from deepscope.records.source_files import base_name
from deepscope.trace.format.counters import PREFIX
from deepscope.trace.format.header import Clock
from deepscope.trace.format.span_names import (
    LINE_CATEGORY,
    MODULE_CATEGORY,
    MODULE_TITLE,
    OFF_CPU_CATEGORY,
    RECORDING_CATEGORY,
    OffCpu,
    off_cpu_name,
    recording_name,
)
from deepscope.trace.model import Scope

_ARGS = b'"args":{'


class _ScopeFields(msgspec.Struct, gc=False):
    """The fields of torch's event that a scope's event keeps; numbers stay the text that they were."""

    pid: msgspec.Raw
    tid: msgspec.Raw
    ts: msgspec.Raw
    dur: msgspec.Raw


_decode_place: Callable[[Any], _ScopeFields] = msgspec.json.Decoder(_ScopeFields).decode
_decode_object: Callable[[Any], dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def json_bytes(value: Any) -> bytes:
    """`value` as JSON in ASCII-safe UTF-8; a lone surrogate (an undecodable byte of a path) becomes `?`."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(msgspec.to_builtins(value)))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value


def compact(array: bytes) -> bytes:
    """A JSON array without the spaces between its tokens, numbers untouched; as it is with lone surrogates in it."""
    try:
        return bytes(msgspec.json.format(array, indent=-1))
    except msgspec.DecodeError:
        return array


def scope_prefix(number: int, scope: Scope, *, is_module: bool) -> tuple[bytes, bytes]:
    """What stands before and after the place and times of a scope's events."""
    if is_module:
        category, name = MODULE_CATEGORY, f"{MODULE_TITLE}{scope.name}"
    else:
        category, name = LINE_CATEGORY, f"{base_name(scope.file)}({scope.line}): {scope.name}"
    before = b'{"ph":"X","cat":"%s","name":%s,"pid":' % (category.encode(), json_bytes(name))
    return before, b',"args":{"scope":%d}}' % number


def off_cpu_prefix(off_cpu: OffCpu) -> tuple[bytes, bytes]:
    """What stands before and after the place and times of a mark that a line was off the CPU."""
    before = b'{"ph":"X","cat":"%s","name":%s,"pid":' % (
        OFF_CPU_CATEGORY.encode(),
        json_bytes(off_cpu_name(off_cpu)),
    )
    return before, b',"args":{"off_cpu_ns":%d,"core_wait_ns":%d}}' % off_cpu


def recording_prefix(duration_ns: int) -> tuple[bytes, bytes]:
    """What stands before and after the place and times of a mark that recording took a part of a line."""
    before = b'{"ph":"X","cat":"%s","name":%s,"pid":' % (
        RECORDING_CATEGORY.encode(),
        json_bytes(recording_name(duration_ns)),
    )
    return before, b',"args":{"recording_ns":%d}}' % duration_ns


def scope_event(event: bytes, before: bytes, after: bytes, times_ns: tuple[int, int] | None = None) -> bytes:
    """The event for one run of a scope; `event` is torch's, `before` and `after` are from `scope_prefix`.

    `times_ns`: its start and duration, where these are not torch's.
    """
    place = _decode_place(event)
    start, duration = (place.ts, place.dur) if times_ns is None else map(microseconds, times_ns)
    return b'%s%s,"tid":%s,"ts":%s,"dur":%s%s' % (before, place.pid, place.tid, start, duration, after)


def microseconds(duration_ns: int) -> bytes:
    """A time or duration as torch's export has it."""
    return b"%d.%03d" % divmod(duration_ns, 1000)


def with_duration(event: bytes, duration_ns: int) -> bytes:
    """`event`, which ended earlier than torch says."""
    whole = _decode_object(event)
    whole["dur"] = msgspec.Raw(microseconds(duration_ns))
    return msgspec.json.encode(whole)


def with_argument(event: bytes, key: bytes, value: bytes) -> bytes:
    """`event` with `"key":value` among its arguments; key and value are JSON."""
    at = event.find(_ARGS)
    if key in event or at < 0:
        whole = _decode_object(event)
        args = _decode_object(whole["args"]) if "args" in whole else {}
        args[msgspec.json.decode(key)] = msgspec.Raw(value)
        whole["args"] = msgspec.Raw(msgspec.json.encode(args))
        return msgspec.json.encode(whole)
    at += len(_ARGS)
    comma = b"" if event[at : at + 1] == b"}" else b","
    return b"%s%s:%s%s%s" % (event[:at], key, value, comma, event[at:])


def with_name(event: bytes, name: str) -> bytes:
    """`event` as an annotation of another name; torch's light spans come as operators."""
    whole = _decode_object(event)
    if bytes(whole.get("cat", b"")) == b'"cpu_op"':
        whole["cat"] = msgspec.Raw(b'"user_annotation"')
    whole["name"] = msgspec.Raw(json_bytes(name))
    return msgspec.json.encode(whole)


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


_NAME = re.compile(rb'("name": ")(.*)(",\s*(?:"pid":.*)?)$', re.DOTALL)
"""In a line of an export: up to 2.1 the whole head of an event stands on one line, later the name alone."""


def escape_names(export: Path) -> int:
    """Escape the quotes within the names of events in torch's own export; returns how many names had any.

    Raises `OSError` when the file cannot be read or written anew.
    """
    repaired = export.with_name(f"{export.name}.tmp")
    count = 0
    with export.open("rb") as lines, repaired.open("wb") as out:
        for line in lines:
            found = _NAME.search(line)
            if found is not None and b'"' in found[2]:
                count += 1
                line = line[: found.start()] + found[1] + found[2].replace(b'"', b'\\"') + found[3]  # noqa: PLW2901
            out.write(line)
    repaired.replace(export)
    return count
