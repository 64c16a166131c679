"""What stands before a trace's events: other top-level keys, a byte order mark, or nothing at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from deepscope.errors import NotATraceError
from deepscope.trace.kineto.decode import FAILURES

BLANK = b" \t\r\n"
"""What JSON has between its tokens."""


class Text:
    """The part that has come and is not read yet, in `buffer`."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.buffer = bytearray()
        self.has_ended = False
        """All of it has come."""
        self._chunks = iter(chunks)

    def fill(self) -> bool:
        """One chunk more; False where there is none."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.has_ended = True
            return False
        self.buffer += chunk
        return True

    def fill_to(self, size: int) -> bool:
        """At least one chunk more, up to a size; False where there is none."""
        if not self.fill():
            return False
        while len(self.buffer) < size and self.fill():
            pass
        return True


EMPTY = "is empty; was the run ended before the trace was written?"
ADVICE = "give a Kineto or Chrome trace (.json or .json.gz)"

_ARRAY_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOM = b"\xef\xbb\xbf"
_MOST_TRIED = 32
"""Places named `traceEvents` that are tried: more than a few are no head of a trace."""


class FileHead(NamedTuple):
    """What a file begins with."""

    metadata: dict[str, Any]
    is_bare: bool
    """The file is the array of events alone."""


def take_head(text: Text, path: str) -> FileHead | None:
    """Takes it from the text, which is left at the array of events, its bracket included.

    None where the file ends before the events. Raises `NotATraceError` on what is no trace at all.
    """
    text.fill_to(64)
    if text.buffer.startswith(_BOM):
        del text.buffer[: len(_BOM)]
    while not (rest := text.buffer.lstrip(BLANK)) and _fill_anew(text):
        pass
    text.buffer = rest
    if text.buffer.startswith(b"["):
        return FileHead({}, is_bare=True)
    searched = tried = 0
    while text.buffer.startswith(b"{") and tried < _MOST_TRIED:
        match = _ARRAY_KEY.search(text.buffer, searched)
        if match is None:
            searched = _where_the_key_may_begin(text.buffer, searched)
            if not text.fill_to(2 * len(text.buffer) - searched):
                break
        elif (keys := read_object(text.buffer[: match.start()] + b'"traceEvents":0}')) is not None:
            keys.pop("traceEvents", None)
            del text.buffer[: match.end() - 1]
            return FileHead(keys, is_bare=False)
        else:  # a key of that name further down, or bad JSON
            searched = match.end()
            tried += 1
    if _is_cut_object(text.buffer):
        return None
    raise NotATraceError(f"{path}: {_what_it_is(text.buffer, path)}")


def read_object(text: bytes | bytearray) -> dict[str, Any] | None:
    """The JSON object of a text; None for any other text."""
    try:
        value = msgspec.json.decode(text)
    except FAILURES:
        return None
    return value if isinstance(value, dict) else None


def _where_the_key_may_begin(buffer: bytearray, searched: int) -> int:
    """Nothing before this place can become the key of the events, whatever comes."""
    key = buffer.rfind(b'"traceEvents"', searched)
    if key >= 0 and not buffer[key + len(b'"traceEvents"') :].strip(BLANK + b":"):
        return key
    return max(searched, len(buffer) - 64)


def _fill_anew(text: Text) -> bool:
    text.buffer.clear()
    return text.fill()


def _is_cut_object(buffer: bytearray) -> bool:
    try:
        msgspec.json.decode(buffer)
    except FAILURES as error:
        return buffer.lstrip(BLANK).startswith(b"{") and "truncated" in str(error)
    return False


def _what_it_is(buffer: bytearray, path: str) -> str:
    body = bytes(buffer).strip(BLANK)
    if not body:
        return EMPTY
    try:
        msgspec.json.decode(body)
    except FAILURES:
        if body.startswith(b"PK\3\4"):
            return f"is a zip archive; unpack it, or name the trace in it: zip://NAME::{path}"
        what = "holds binary data" if b"\0" in body[:1024] else "holds no JSON"
        return f"{what}; {ADVICE}"
    return f"is JSON without `traceEvents`; {ADVICE}"


def take_tail(text: Text, *, is_bare: bool) -> dict[str, Any] | None:
    """The keys after the array: `, "a": 1}` or `}`; nothing may follow a bare array. None where it is not whole."""
    while text.fill():
        pass
    if is_bare:
        return None if text.buffer.strip(BLANK) else {}
    value = read_object(b'{"traceEvents":0' + text.buffer)
    if value is not None:
        value.pop("traceEvents", None)
    return value
