"""Numbers in foreign tables: times and sizes as integers, and 0 for what cannot be one."""

from __future__ import annotations

import math

_LONGEST_NS = 10**15
"""Eleven days. A longer time is an instant that stands where a duration should: torch_npu writes such ones."""
_MOST_BYTES = 2**60
_MOST_RANKS = 2**24
NS_PER_US, NS_PER_MS = 1_000, 1_000_000
BYTES_PER_MB = 1_000_000
"""`Transit Size(MB)` over `Transit Time(ms)` is `Bandwidth(GB/s)`: they are decimal."""


def time_ns(value: object, unit_ns: int) -> int:
    """A time that is given in a unit."""
    return _scaled(value, unit_ns, _LONGEST_NS)


def size_bytes(value: object) -> int:
    """A size that is given in megabytes."""
    return _scaled(value, BYTES_PER_MB, _MOST_BYTES)


def rank_of(value: object) -> int | None:
    """The number of a rank; None for what is none."""
    text = str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 and int(text) < _MOST_RANKS else None


def step_of(value: object) -> int:
    """The number of a step: of `step12`, of `12`, and -1 of anything else."""
    number = rank_of(str(value).strip().removeprefix("step")) if isinstance(value, (str, int)) else None
    return -1 if number is None else number


def _scaled(value: object, unit: int, most: int) -> int:
    try:
        number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return 0
    scaled = number * unit
    return round(scaled) if math.isfinite(scaled) and 0 <= scaled <= most else 0
