"""Units of counters, as the pages know them."""

from __future__ import annotations

from typing import Literal

Unit = Literal["bytes", "percent", "count", "bytesPerSecond", "perSecond", "watts", "megahertz", "celsius"]

_UNITS: dict[str, Unit] = {
    "%": "percent",
    "B": "bytes",
    "B/s": "bytesPerSecond",
    "1/s": "perSecond",
    "W": "watts",
    "MHz": "megahertz",
    "°C": "celsius",
}


def unit_named(unit: str) -> Unit:
    """The unit of a counter of `trace.format.counters`."""
    return _UNITS.get(unit, "count")
