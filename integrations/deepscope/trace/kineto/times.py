"""Times of events in integer nanoseconds, to the last digit that the text has."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, DecimalException
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from deepscope.trace.kineto.decode import NOTHING, Buffer
from deepscope.trace.model import Int64


class _Times(msgspec.Struct, gc=False):
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING


_decode_times = msgspec.json.Decoder(list[_Times]).decode

# In [2**42, 2**43) doubles stand 2**-10 µs apart, so three decimals come back exactly; above they do not.
_EXACT_BELOW_US = float(2**43)
_MAX_NS = 2**62
_BAD_TIME = -(2**63)
_ABSENT = (b"", b"null")


def nanoseconds(values: list[Any]) -> Int64 | None:
    """Decoded microseconds as nanoseconds; None if only the text has them exactly (`exact_times`)."""
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
