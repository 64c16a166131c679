"""The report as JSON: the contract that docs/report.md describes."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from deepscope.records import CurvePoint, Function, Kernel, Line, Memory, Operator, Profile, RankSpread, Rate, Step, Top
from deepscope.report.critical import without_lines
from deepscope.report.event_names import readable
from deepscope.report.tables import table

__all__ = ["REPORT_FORMAT", "json_report", "plain", "report_object"]

REPORT_FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""


def json_report(profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0) -> str:
    """The report as JSON text, in ASCII: a hostile name cannot reach the terminal as an escape sequence."""
    return json.dumps(report_object(profile, by=by, sort=sort, limit=limit), indent=1)


def report_object(profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0) -> dict[str, Any]:
    """The report as dicts and lists.

    `lines` is always there, by `self_device_ns`; `sort` and `limit` are for the table of `by`, which stands under its
    own key.

    Raises:
        OptionError: no such `by` or `sort`.
    """
    chosen = table(by)
    lines = table("line").rows(profile, sort="self")
    rows = chosen.rows(profile, sort=sort or ("self" if by == "line" else None), limit=limit)
    report: dict[str, Any] = {
        "format": REPORT_FORMAT,
        "metric": profile.metric,
        "step": profile.step,
        "trace": plain(profile.trace),
        "totals": plain(profile.totals),
        "peaks": None if profile.peaks is None else plain(profile.peaks),
        "resolved": {**plain(profile.resolved), "ratio": profile.resolved.ratio},
        "lines": [plain(line) for line in lines],
        "no_line": plain(profile.no_line),
        "framework": [plain(part) for part in profile.framework],
        "memory": _memory(profile.memory),
        "critical": without_lines(profile),
        "findings": [plain(finding) for finding in profile.findings],
    }
    report[chosen.key] = [plain(row) for row in rows]
    return report


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record as the report shows it."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    # The cache keeps these records as arrays; the report names their fields.
    if isinstance(record, Line):
        for key, tops in (("top_operators", record.top_operators), ("top_kernels", record.top_kernels)):
            plain[key] = [_named(top) | {"label": readable(top.name)} for top in tops]
    if isinstance(record, (Line, Operator)):
        plain["why"]["rates"] = [_named(rate) for rate in record.why.rates]
    if isinstance(record, (Operator, Kernel)):
        plain["label"] = readable(record.name)
    if isinstance(record, (Line, Function, Step)):
        plain["spread"] = None if record.spread is None else _named(record.spread)
    return plain


def _memory(memory: Memory) -> dict[str, Any]:
    found = plain(memory)
    for row, device in zip(found["devices"], memory.devices, strict=True):
        row["curve"] = [_named(point) for point in device.curve]
    return found


def _named(record: Top | RankSpread | Rate | CurvePoint) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
