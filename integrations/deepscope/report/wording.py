"""How numbers and foreign text are worded: units, shares, and names made safe to print."""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, rate_text, share_text, time_text

__all__ = ["bytes_text", "count_text", "per_second_text", "printable", "rate_text", "share_text", "time_text"]


def per_second_text(value: float) -> str:
    """Operations or bytes a second without their unit, `632T`; "" for 0."""
    return rate_text(round(value * 1000), 10**12, "").replace(" ", "")
