"""The report as JSON and as CSV: the contract that docs/report.md describes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from deepscope.printable import printable
from deepscope.records import (
    Collective,
    CounterSeries,
    Function,
    Kernel,
    Line,
    Memory,
    Operator,
    OperatorInDetail,
    Profile,
    ServingPhase,
    ServingStep,
    Step,
    key_figures,
)
from deepscope.report.critical_path import without_lines
from deepscope.report.event_names import parsed, readable
from deepscope.report.filters import NO_FILTERS, Filters
from deepscope.report.module_tree import children_of, depths
from deepscope.report.operator_columns import derived_columns
from deepscope.report.run_verdict import run_verdict
from deepscope.report.step_table import serving_columns, step_times
from deepscope.report.tables import DERIVED, table, table_of_steps

REPORT_FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""


def json_report(
    profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0, filters: Filters = NO_FILTERS
) -> str:
    """The report as JSON text, in ASCII: a hostile name cannot reach the terminal as an escape sequence."""
    return json.dumps(report_object(profile, by=by, sort=sort, limit=limit, filters=filters), indent=1)


def report_object(
    profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0, filters: Filters = NO_FILTERS
) -> dict[str, Any]:
    """The report as dicts and lists.

    `lines` is always there, by cost; `sort` is for the table of `by`, which stands under its own key. With a
    `limit` these tables, the findings (the largest savings) and each memory curve have so many rows at most;
    `counts` says how many there are.

    Raises:
        OptionError: no such `by` or `sort`.
    """
    has_steps, by = by == "step", table_of_steps(by, profile)
    chosen = table(by, profile.details)
    lines = table("line").rows(profile)
    rows = chosen.rows(profile, sort=sort)
    kept = filters.rows(by, rows, profile.trace.project_root)

    def cut(rows: Sequence[Any]) -> Sequence[Any]:
        return rows[:limit] if limit else rows

    report: dict[str, Any] = {
        "format": REPORT_FORMAT,
        "metric": profile.metric,
        "verdict": plain(run_verdict(profile)),
        "step": profile.step,
        "filters": filters_object(profile, filters),
        "trace": plain(profile.trace),
        "totals": plain(profile.totals),
        "peaks": None if profile.peaks is None else plain(profile.peaks),
        "resolved": {**plain(profile.resolved), "ratio": profile.resolved.ratio},
        "figures": plain(key_figures(profile)),
        "lines": with_derived("line", cut(lines), profile),
        "no_line": plain(profile.no_line),
        "framework": [plain(part) for part in profile.framework],
        "serving": serving_rows(profile),
        "memory": _memory(profile.memory, limit),
        "critical": without_lines(profile),
        "findings": [plain(finding) for finding in cut(profile.findings)],
        "tries": [plain(one) for one in profile.tries],
        "counts": {"lines": len(lines), "findings": len(profile.findings), chosen.key: len(kept)},
    }
    shown = chosen.limited(kept, sort, limit)
    report[chosen.key] = with_derived(by, shown, profile)
    if by == "module":
        children = children_of(kept)
        for row, depth in zip(report[chosen.key], depths(shown), strict=True):
            row |= {"depth": depth, "children": children[row["path"]]}
    if has_steps:
        report.setdefault("steps", [])  # only a server's steps are known
        times = step_times(profile)
        report["step_times"] = None if times is None else plain(times)
    return report


def serving_rows(profile: Profile) -> list[dict[str, Any]]:
    """The phases of a server of models, with their means."""
    means = [column for column in serving_columns(profile) if column.key not in ServingPhase.__struct_fields__]
    return [plain(row) | {one.key: one.value(row) for one in means} for row in profile.serving]


def with_derived(by: str, rows: Sequence[Any], profile: Profile) -> list[dict[str, Any]]:
    """Records with the numbers of their table that are no fields of them."""
    more = derived_columns(by, profile)
    return [plain(row) | {one.key: one.value(row) for one in more} for row in rows]


def filters_object(profile: Profile, filters: Filters) -> dict[str, Any] | None:
    """What was chosen, and the whole that it was chosen from."""
    part = profile.part_of
    if part is None and not filters:
        return None
    return {
        "phase": "" if part is None else part.view.phase,
        "module": "" if part is None else part.view.module,
        "include": list(filters.include),
        "exclude": list(filters.exclude),
        "min_time_ns": filters.min_ns,
        "whole_device_ns": profile.totals.device_ns if part is None else part.device_ns,
        "whole_wall_ns": profile.totals.wall_ns if part is None else part.wall_ns,
    }


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record as the report shows it."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    if record.__struct_config__.omit_defaults:  # the cache does without them
        fields = record.__struct_fields__
        plain = {name: plain[name] if name in plain else msgspec.to_builtins(getattr(record, name)) for name in fields}
    # The cache keeps these records as arrays; the report names their fields.
    if isinstance(record, Line):
        for key, tops in (("top_operators", record.top_operators), ("top_kernels", record.top_kernels)):
            plain[key] = [asdict(top) | {"label": readable(top.name)} for top in tops]
    if isinstance(record, (Line, Operator)):
        plain["why"]["rates"] = [asdict(rate) for rate in record.why.rates]
    if isinstance(record, OperatorInDetail):
        for key in ("in_shapes", "out_shapes", "dtypes"):
            plain[key] = parsed(plain[key])
        from deepscope.trace.names import parse_call_stack  # imports NumPy, which no other table needs

        plain["stack"] = [
            {"file": one.path, "line": one.line, "function": one.function} for one in parse_call_stack(record.stack)
        ]
    if isinstance(record, Kernel):
        plain["grid"], plain["block"] = parsed(record.grid), parsed(record.block)
    if isinstance(record, (Operator, Kernel)):
        plain["label"] = readable(record.name)
    if isinstance(record, Collective):
        del plain["shortest_ns"]  # what the next ones are worked out from
        plain |= {name: getattr(record, name) for name in DERIVED["collective"]}
    if isinstance(record, ServingStep):
        plain |= {name: getattr(record, name) for name in DERIVED["serving"]}
    if isinstance(record, CounterSeries):
        plain["blocks"] = [asdict(block) for block in record.blocks]
    if isinstance(record, (Line, Function, Step)):
        plain["spread"] = None if record.spread is None else asdict(record.spread)
    return plain


def _memory(memory: Memory, limit: int) -> dict[str, Any]:
    """Memory as the report shows it; with a limit so many lines of a failure, and the highest points of each curve."""
    found = plain(memory)
    for row, device in zip(found["devices"], memory.devices, strict=True):
        highest = sorted(device.curve, key=lambda point: -point.allocated_bytes)[: limit or None]
        row["curve"] = [asdict(point) for point in sorted(highest, key=lambda point: point.at_ns)]
    if found["failure"] is not None and limit:
        found["failure"]["lines"] = found["failure"]["lines"][:limit]
    return found


_LABELLED = ("operator", "kernel")
"""Tables with the trace's own names; their last column has the readable names, as `label` in JSON."""
_FORMULA = ("=", "+", "-", "@")


def csv_report(
    profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0, filters: Filters = NO_FILTERS
) -> str:
    """One table as CSV; the line table ends with the row of the work that reached no line (`file` empty, `line` 0).

    Raises:
        OptionError: no such `by` or `sort`.
    """
    by = table_of_steps(by, profile)
    chosen = table(by, profile.details)
    rows = filters.rows(by, chosen.rows(profile, sort=sort), profile.trace.project_root)
    rows = chosen.limited(rows, sort, limit)
    if by == "line" and not filters:
        rows = [*rows, Line(file="", line=0, function="", exact=False, **asdict(profile.no_line))]
    more = derived_columns(by, profile)
    label = ["label"] if by in _LABELLED else []
    cells = [
        [
            *(getattr(row, name) for name in chosen.scalars),
            *(one.value(row) for one in more),
            *(readable(row.name) for _ in label),
        ]
        for row in rows
    ]
    return csv_text((*chosen.scalars, *(one.key for one in more), *label), cells)


def csv_text(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as CSV with a header row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()


def cell(value: Any) -> str | float:
    """Flags as 0 and 1, lists and tables as JSON; a text that a spreadsheet would run as a formula gets an apostrophe.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value
    if isinstance(value, (list, dict)):
        value = json.dumps(msgspec.to_builtins(value))
    text = printable(value)
    return "'" + text if text.lstrip().startswith(_FORMULA) else text
