"""What the training framework costs on its own account: a row of its own, no part of the line that calls it."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar

from msgspec.structs import asdict, replace

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import Numbers, Profile
from deepscope.records.places import NO_LINE

Row = TypeVar("Row", bound=Numbers)
PARTS = 4
"""Parts that are named."""


def _field(profile: Profile) -> str:
    """Beside the work that it owns a line costs this."""
    return "idle_ns" if profile.metric == "device" else "python_ns"


def without_framework(row: Row, profile: Profile) -> Row:
    """The row without the framework's own part of its cost."""
    if not row.framework_ns:
        return row
    field = _field(profile)
    less = {"cost_ns": row.cost_ns - row.framework_ns, field: getattr(row, field) - row.framework_ns}
    return replace(row, **less, framework_ns=0)


class RestRow(Numbers):
    """A row with numbers and a name in place of a line."""

    name: str


def rest_rows(profile: Profile) -> list[RestRow]:
    """What no line has: each framework's own work, and the work of no user line."""
    sums: dict[str, int] = defaultdict(int)
    for part in profile.framework:
        sums[part.framework] += part.cost_ns
    rows = [RestRow(name=f"({printable(name)})", **{"cost_ns": ns, _field(profile): ns}) for name, ns in sums.items()]
    if any(getattr(profile.no_line, field) for field in Numbers.__struct_fields__):
        rows.append(RestRow(name=NO_LINE, **asdict(profile.no_line)))
    return rows


def framework_words(profile: Profile) -> dict[str, str]:
    """`(Framework)` → what it does: `its own loops 16.2ms, logging 3.22ms`."""
    costs: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for part in profile.framework:
        costs[part.framework][part.part] += part.cost_ns
    return {f"({printable(name)})": _words(parts) for name, parts in costs.items()}


def _words(parts: dict[str, int]) -> str:
    listed = sorted(parts.items(), key=lambda item: -item[1])
    named = [f"{printable(part)} {time_text(cost_ns)}" for part, cost_ns in listed[:PARTS]]
    rest = sum(cost_ns for _, cost_ns in listed[PARTS:])
    return "its own " + ", ".join([*named, *([f"others {time_text(rest)}"] if rest else [])])
