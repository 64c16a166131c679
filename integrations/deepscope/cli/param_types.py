"""Types of options, whichever click is there: among them lengths of time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    FloatType = click.ParamType[float]
else:
    FloatType = click.ParamType  # before click 8.2 it takes no type


_UNITS = {
    "": 1.0,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}
_DURATION = re.compile(r"\s*(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*([a-zµμ]*)\s*", re.ASCII)


class Duration(FloatType):
    """`60`, `90s`, `1.5m`, `2h`, `500ms`, `100us` as seconds; no time at all only where `zero` allows it."""

    name = "time"

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _DURATION.fullmatch(str(value).lower())
        if found is None or found[2] not in _UNITS:
            self.fail(f"{value!r} is no time; it takes a number with ns, us, ms, s, m or h: 90s, 1.5ms", param, ctx)
        seconds = float(found[1]) * _UNITS[found[2]]
        if not seconds and not self._zero:
            self.fail(f"{value!r} is no time above 0", param, ctx)
        return seconds
