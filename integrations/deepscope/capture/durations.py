"""Durations as users write them."""

from __future__ import annotations

import math
import re

from deepscope.errors import OptionError

__all__ = ["seconds_of"]

_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds_of(option: str, value: object) -> float:
    """`60`, `"90s"`, `"1.5m"` as seconds, more than none. Raises `OptionError`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", str(value).lower())
    seconds = float(found[1]) * _UNITS[found[2]] if found is not None and found[2] in _UNITS else 0.0
    if isinstance(value, bool) or not 0 < seconds < math.inf:
        raise OptionError(option, value, "must be seconds above 0, or such a number with ms, s, m or h: 90s")
    return seconds
