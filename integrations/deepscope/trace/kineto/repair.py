"""Events that do not decode as they are: found by their brackets alone, and brought into the expected shape."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from deepscope.trace.kineto.decode import FAILURES, Buffer, decode_events


class Span(NamedTuple):
    """Where one whole event stands in a buffer."""

    start: int
    stop: int


TOO_DEEP = -2
_DEEPEST = 10_000
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|"', re.DOTALL)


def spans(buffer: Buffer) -> tuple[list[Span], int]:
    """Events that stand whole in `buffer`, and where the array of events closes (-1: not here).

    `buffer` begins between two events. The slow way, by brackets alone: for pieces that do not decode as they were cut.
    A lone quote is a string that the buffer's end cuts. Where an event is nested deeper than any decoder goes,
    the events before it come with `TOO_DEEP`.
    """
    found: list[Span] = []
    depth = start = 0
    for match in _TOKEN.finditer(buffer):
        first = match[0][:1]
        if first == b'"':
            if len(match[0]) == 1:
                break
        elif first in b"{[":
            if depth == 0:
                start = match.start()
            depth += 1
            if depth > _DEEPEST:
                return found, TOO_DEEP
        else:
            if depth == 0:
                return found, (match.start() if first == b"]" else -1)
            depth -= 1
            if depth == 0 and first == b"}":
                found.append(Span(start, match.end()))
    return found, -1


_NOT_JSON = re.compile(
    r'("[^"\\]*(?:\\.[^"\\]*)*")|(?<![\w.])[-+]?(?:nan(?:\([^)]*\))?|inf(?:inity)?)(?![\w.])', re.IGNORECASE | re.DOTALL
)


def _normalised(event: bytes) -> bytes | None:
    """One event in the shape that `decode_events` takes; None if it is no JSON object even with allowances.

    Allowed for: bytes that are no UTF-8, raw control characters, `nan`, `inf` and `Infinity`, fields of other types.
    Fractions stay text, so that no digit of a time is lost.
    """
    import json  # for such events alone

    text = event.decode("utf-8", "replace")
    text = _NOT_JSON.sub(lambda match: match[1] or "null", text)
    try:
        raw = json.loads(text, strict=False, parse_float=str, parse_int=_bounded_int)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    args = raw.get("args")
    shaped: dict[str, Any] = {key: _word(raw.get(key)) for key in ("ph", "cat", "name")}
    shaped |= {key: _scalar(raw.get(key)) for key in ("pid", "tid", "ts", "dur", "id")}
    shaped["args"] = args if isinstance(args, dict) else None
    try:
        # Lone surrogates (`\ud800`) cannot be written as UTF-8; escaped they could not be read back.
        return json.dumps(shaped, ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None


def decodable(event: bytes) -> bytes | None:
    """The event as it is, or in the expected shape; None where neither decodes."""
    for text in (event, _normalised(event)):
        if text is None:
            return None
        try:
            decode_events(b"[" + text + b"]")
        except FAILURES:
            continue
        return text
    return None


def _bounded_int(text: str) -> int | str:
    return int(text) if len(text) <= 18 else text


def _word(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _scalar(value: object) -> int | str | None:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, str)) or value is None else str(value)
