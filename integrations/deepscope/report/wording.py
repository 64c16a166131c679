"""How numbers and foreign text are worded: units, shares, and names made safe to print."""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, rate_text, share_text, time_text

__all__ = ["bytes_text", "count_text", "printable", "rate_text", "share_text", "time_text"]
