"""JSON of events to typed records, whatever shape other recorders and broken writers gave it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, DecimalException
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.trace.model import Int64

__all__ = [
    "FAILURES",
    "TOO_DEEP",
    "Args",
    "Event",
    "Span",
    "counter_values",
    "decode_events",
    "exact_times",
    "nanoseconds",
    "normalise",
    "spans",
]

Buffer = bytes | bytearray | memoryview

FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises on text that is not of the expected shape."""

_NOTHING = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """All arguments that are read, of any category; `Any` where a field's type differs from recorder to recorder."""

    correlation: Any = -1
    external_id: Any = msgspec.field(default=-1, name="External id")
    sequence: Any = msgspec.field(default=-1, name="Sequence number")
    fwd_thread: Any = msgspec.field(default=-1, name="Fwd thread id")
    device: Any = -1
    stream: Any = -1
    size_bytes: Any = msgspec.field(default=-1, name="bytes")
    call_stack: Any = msgspec.field(default=None, name="Call stack")
    shapes: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Dims")
    concrete: msgspec.Raw = msgspec.field(default=_NOTHING, name="Concrete Inputs")
    scope: Any = -1
    # Older and other names of the same.
    old_external_id: Any = msgspec.field(default=-1, name="external id")
    old_shapes: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input dims")
    connection_id: Any = -1
    correlation_id: Any = -1
    npu_stream: Any = msgspec.field(default=-1, name="Stream Id")
    mtia_size: Any = msgspec.field(default=-1, name="size")
    # `[memory]` instants.
    address: Any = msgspec.field(default=-1, name="Addr")
    memory_bytes: Any = msgspec.field(default=0, name="Bytes")
    total_allocated: Any = msgspec.field(default=-1, name="Total Allocated")
    device_type: Any = msgspec.field(default=-1, name="Device Type")
    device_id: Any = msgspec.field(default=-1, name="Device Id")
    # Metadata events.
    name: Any = None


class Event(msgspec.Struct, gc=False):
    """One event of any phase."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: int | float | str | None = None
    args: Args | None = None


class _Times(msgspec.Struct, gc=False):
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING


class _Values(msgspec.Struct, gc=False):
    ph: str = ""
    args: msgspec.Raw = _NOTHING


decode_events = msgspec.json.Decoder(list[Event]).decode
"""An array of events to records. Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError`."""

_decode_times = msgspec.json.Decoder(list[_Times]).decode
_decode_values = msgspec.json.Decoder(list[_Values]).decode

# In [2**42, 2**43) doubles stand 2**-10 µs apart, so three decimals come back exactly; above they do not.
_EXACT_BELOW_US = float(2**43)
_MAX_NS = 2**62
_BAD_TIME = -(2**63)
_ABSENT = (b"", b"null")


def nanoseconds(values: list[Any]) -> Int64 | None:
    """Microseconds as decoded to nanoseconds; None where only the text has them exactly (`exact_times`)."""
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if not (np.abs(array) < _EXACT_BELOW_US).all():
        whole_numbers = np.array(values)
        if whole_numbers.dtype == np.int64 and (np.abs(whole_numbers) < _MAX_NS // 1000).all():
            return whole_numbers * 1000
        return None
    # Whole and fraction are scaled apart: the product of the whole would round a second time.
    whole = np.floor(array)
    return whole.astype(np.int64) * 1000 + np.rint((array - whole) * 1000).astype(np.int64)


def exact_times(piece: Buffer) -> tuple[Int64, Int64, npt.NDArray[np.bool_]]:
    """Starts and durations (ns) of the events in `piece` from their text, and which have times that can be used."""
    times = _decode_times(piece)
    start = np.fromiter((_exact_ns(bytes(t.ts)) for t in times), np.int64, len(times))
    durations = (bytes(t.dur) for t in times)
    duration = np.fromiter((0 if text in _ABSENT else _exact_ns(text) for text in durations), np.int64, len(times))
    good = (start != _BAD_TIME) & (duration != _BAD_TIME)
    return np.where(good, start, 0), np.where(good, duration, 0), good


def _exact_ns(text: bytes) -> int:
    whole, _, fraction = text.strip(b'" \t\r\n').partition(b".")
    if len(fraction) <= 3 and len(whole) <= 16 and whole.isdigit() and (not fraction or fraction.isdigit()):
        result = int(whole) * 1000 + int(fraction.ljust(3, b"0"))
    else:
        try:
            value = Decimal(text.strip(b'" \t\r\n').decode("ascii")) * 1000
            if not value.is_finite() or value.adjusted() > 18:
                return _BAD_TIME
            result = int(value.to_integral_value(ROUND_HALF_EVEN))
        except (DecimalException, UnicodeDecodeError):
            return _BAD_TIME
    return result if abs(result) < _MAX_NS else _BAD_TIME


def counter_values(piece: Buffer) -> Iterator[dict[str, float]]:
    """The samples of each counter event (`ph: C`) in `piece`, in order."""
    for event in _decode_values(piece):
        if event.ph != "C":
            continue
        try:
            args = msgspec.json.decode(event.args)
        except FAILURES:
            args = None
        samples = args.items() if isinstance(args, dict) else ()
        yield {k: float(v) for k, v in samples if isinstance(v, (int, float)) and abs(v) < 1e300}


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


def normalise(event: bytes) -> bytes | None:
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


def _bounded_int(text: str) -> int | str:
    return int(text) if len(text) <= 18 else text


def _word(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _scalar(value: object) -> int | str | None:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, str)) or value is None else str(value)
