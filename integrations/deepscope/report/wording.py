"""How numbers and foreign text are worded: units, shares, and names made safe to print."""

from __future__ import annotations

from deepscope.quantities import rate_text


def per_second_text(value: float) -> str:
    """Operations or bytes a second without their unit, `632T`; "" for 0."""
    return rate_text(round(value * 1000), 10**12, "").replace(" ", "")
