"""The first bytes of a file: whether it is a trace, by its outermost keys alone, and what a trace says there."""

from __future__ import annotations

import re
import zlib
from datetime import datetime

from deepscope.errors import DeepScopeError
from deepscope.store.files import TraceFile, first_bytes
from deepscope.trace.format.json_scan import with_depth

HEAD_BYTES = 1 << 16
"""Of the text: enough for `deviceProperties` of eight devices and `distributedInfo`, which torch writes first."""

_PHASE = re.compile(rb'"ph"\s*:\s*"[A-Za-z(){}]"')
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_TORCH_KEYS = frozenset({b"deviceProperties", b"distributedInfo", b"deepscope", b"trace_id", b"baseTimeNanoseconds"})
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_TIME = re.compile(rb'"ts"\s*:\s*"?(\d{1,19})(?:\.\d*)?')
_TIMES_TRIED = 64
_EARLIEST_NS, _LATEST_NS = 1_400_000_000 * 10**9, 4_000_000_000 * 10**9
"""2014 to 2096: what lies outside is the time since some machine was started."""


def read_head(file: TraceFile) -> bytes:
    """The first 64 KiB of the text, unpacked; nothing of a file that cannot be read."""
    try:
        raw = first_bytes(file, HEAD_BYTES)
        if raw[:2] == b"\x1f\x8b":
            return zlib.decompressobj(wbits=31).decompress(raw, HEAD_BYTES)
    except (OSError, ValueError, zlib.error, DeepScopeError):
        return b""
    return raw


def is_trace(head: bytes) -> bool:
    """Whether a text that begins like this is a Chrome trace.

    It is an object whose own `traceEvents` is an array, or an array of events. A key of that name deeper down, or in a
    text, does not count: reports, notebooks and settings quote traces. Where the head ends before the events, an
    object with torch's own keys is taken for a trace.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text[:1] == b"[":
        return _is_array_of_events(text)
    if text[:1] != b"{":
        return False
    keys: set[bytes] = set()
    for token, depth in with_depth(text):
        if depth == 0:
            return False  # all of it was seen
        if depth == 1 and token[2] is not None:
            if token[1] == b"traceEvents":
                return _ARRAY.match(text, token.start()) is not None
            keys.add(token[1])
    return len(head) >= HEAD_BYTES and b"schemaVersion" in keys and not keys.isdisjoint(_TORCH_KEYS)


def recorded_ns(head: bytes, stated: str = "") -> int:
    """When it was recorded, in nanoseconds since the epoch, as the text says; 0 where it does not.

    Args:
        head: of the whole text: its first event with a time since the epoch.
        stated: the time that DeepScope's header states.
    """
    if stated:
        try:
            return int(datetime.fromisoformat(stated.replace("Z", "+00:00")).timestamp() * 10**9)
        except (ValueError, OverflowError):
            pass
    base = _BASE.search(head)
    base_ns = int(base[1]) if base is not None else 0
    for count, found in enumerate(_TIME.finditer(head)):
        time_ns = base_ns + int(found[1]) * 1_000
        if _EARLIEST_NS < time_ns < _LATEST_NS:
            return time_ns
        if count == _TIMES_TRIED:
            break
    return 0


def _is_array_of_events(text: bytes) -> bool:
    """Whether the first element is an object with a phase and a time, a process or a name of its own."""
    keys: set[bytes] = set()
    for token, depth in with_depth(text):
        sign = token[0]
        if sign in b"}]":
            if depth < 2:
                break
        elif sign in b"{[":
            if depth == 2 and sign == b"[":
                return False
        elif depth == 1:
            return False
        elif depth == 2 and token[2] is not None:
            if token[1] == b"ph" and _PHASE.match(text, token.start()) is None:
                return False
            keys.add(token[1])
    return b"ph" in keys and not keys.isdisjoint({b"ts", b"pid"})
