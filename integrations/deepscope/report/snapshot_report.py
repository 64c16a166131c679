"""A snapshot of torch's memory as text, JSON and CSV; its tables' columns serve the pages, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec

from deepscope.printable import printable
from deepscope.quantities import bytes_text, share_text, time_text
from deepscope.records.lines import NO_LINE
from deepscope.records.memory import (
    GrowingHolder,
    SnapshotDevice,
    SnapshotFailure,
    SnapshotGrowth,
    SnapshotHolder,
    SnapshotMoment,
    SnapshotReport,
)
from deepscope.records.source_files import short_place
from deepscope.report.json_csv import csv_text
from deepscope.report.table_column import ColumnOf, field, share_column, text_columns
from deepscope.report.terminal import MIN_WIDTH, Styles, entries_text, render, shown_words

SNAPSHOT_FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""
_NO_LINE = {"no_line": NO_LINE, "backward": "(no user line: backward)", "before": "(before the history)"}
_GROWING = 5
"""Lines that grow and are named in the head."""


def holder_place(row: SnapshotHolder | GrowingHolder) -> str:
    """What a row is called: `net.py:42`, or why it has no line."""
    return short_place(row.file, row.line) if row.kind == "line" else _NO_LINE[row.kind]


def holder_columns(whole_bytes: int) -> list[ColumnOf]:
    """The columns of what was live at a moment, of `whole_bytes` in all."""
    return [
        ColumnOf("place", "line", "place", holder_place, least=12),
        field("function", "function", "text", rank=3),
        field("category", "category", "text", "What the program called it.", 4),
        field("size_bytes", "live", "bytes", "As it was asked for; the allocator rounds blocks up."),
        share_column("size_bytes", whole_bytes, "Of what was live then."),
        field("blocks", "blocks", "count", "How many were live.", 2),
    ]


def growth_columns() -> list[ColumnOf]:
    """The columns of what grows from step to step."""
    return [
        ColumnOf("place", "line", "place", holder_place, least=12),
        field("function", "function", "text", rank=3),
        field("per_step_bytes", "a step", "bytes", "What a step leaves live."),
        field("size_bytes", "live", "bytes", "Of all steps, at the history's end."),
        field("steps", "steps", "count", "That left something.", 2),
    ]


def device_name(device: SnapshotDevice) -> str:
    """What a device is called: a snapshot has its number alone."""
    return f"device {device.device}"


def moment_words(device: SnapshotDevice) -> str:
    """What the main table of a device is about."""
    return "live at the peak" if device.has_peak else "live as the snapshot was taken"


def device_entries(device: SnapshotDevice) -> Iterator[tuple[str, str]]:
    """What is said of a device above its table: each entry's title and its text."""
    yield device_name(device), _peak(device)
    if not device.has_peak:
        yield "", "the snapshot has no history of allocations, so its peak is not known"
    before = sum(row.size_bytes for row in device.peak.holders if row.kind == "before")
    if before and device.has_peak:
        yield "", f"{bytes_text(before)} of it were allocated before the history begins: their lines are not known"
    for number, failure in enumerate(device.failures):
        yield "" if number else "failed", _failure(device, failure)
    if device.failed > len(device.failures):
        yield "", f"{_counted(device.failed - len(device.failures), 'more allocation')} failed before"
    yield "fragments", _fragments(device)
    yield "grows", growth_words(device.growth)
    if device.growth is not None:
        for row in device.growth.holders[:_GROWING]:
            yield (
                "",
                printable(
                    f"{holder_place(row)}: {bytes_text(row.per_step_bytes) or '0'} a step,"
                    f" {bytes_text(row.size_bytes)} of {row.steps} steps are live"
                ),
            )


def _peak(device: SnapshotDevice) -> str:
    peak = device.peak
    words = f"{bytes_text(peak.allocated_bytes) or '0'} {moment_words(device)}"
    if device.has_peak:
        words += _when(device, peak)
    return words + _reserved(peak)


def _when(device: SnapshotDevice, moment: SnapshotMoment) -> str:
    if not (device.begin_us and moment.time_us):
        return ""
    return f", {time_text((moment.time_us - device.begin_us) * 1000) or '0'} into the history"


def _reserved(moment: SnapshotMoment) -> str:
    return f", {bytes_text(moment.reserved_bytes) or '0'} reserved" if moment.reserved_bytes >= 0 else ""


def _failure(device: SnapshotDevice, failure: SnapshotFailure) -> str:
    largest = failure.holders[0] if failure.holders else None
    words = (
        f"{bytes_text(failure.asked_bytes) or '0'} were asked for{_when(device, failure)}:"
        f" {bytes_text(failure.free_bytes) or '0'} free on the device,"
        f" {bytes_text(failure.allocated_bytes) or '0'} live{_reserved(failure)}"
    )
    if largest is not None:
        words += f"; most of it at {holder_place(largest)} ({bytes_text(largest.size_bytes)})"
    return printable(words)


def _fragments(device: SnapshotDevice) -> str:
    found = device.fragmentation
    free = found.reserved_bytes - found.live_bytes
    words = f"{bytes_text(found.reserved_bytes) or '0'} reserved in {_counted(found.segments, 'segment')}"
    if not free:
        return f"{words}, none of it free"
    words += f", {bytes_text(free)} of it free ({share_text(free, found.reserved_bytes)})"
    words += f", the largest block {bytes_text(found.largest_free_bytes)}"
    if found.split_bytes:
        words += f"; {bytes_text(found.split_bytes)} beside live blocks, which cannot go back to the device"
    if found.rounding_bytes:
        words += f"; {bytes_text(found.rounding_bytes)} more are lost by rounding up"
    return words


def growth_words(growth: SnapshotGrowth | None) -> str:
    """What grows, and how sure that is."""
    if growth is None:
        return "not known: no steps can be told apart, or too few"
    if growth.source == "annotations":
        compared = f"{growth.steps} steps by the annotation {printable(growth.name)}"
    else:
        compared = (
            f"{growth.steps} steps by their allocations ({growth.equal_steps} are equal), as no annotation marks them"
        )
    if not growth.holders:
        return f"nothing, in {compared}"
    shown = f", the first {_GROWING}" if len(growth.holders) > _GROWING else ""
    return f"{_counted(len(growth.holders), 'line')}{shown}, in {compared}"


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def snapshot_text(
    report: SnapshotReport, *, limit: int = 20, stacks: bool = False, width: int = 80, color: bool = False
) -> str:
    """The report for a terminal `width` cells wide, ending in a newline; `limit` 0 shows all rows."""
    styles = Styles(color)
    width = max(MIN_WIDTH, width)
    lines = list(entries_text([("snapshot", _head(report))], width, styles))
    for device in report.devices:
        lines += entries_text(device_entries(device), width, styles)
        tables: list[tuple[str, SnapshotMoment]] = [(moment_words(device), device.peak)]
        if device.failures:
            tables.append(("live when the last allocation failed", device.failures[-1]))
        for title, moment in tables:
            lines += ["", styles.heading(f"{device_name(device)}: {title}")]
            lines += _table(moment, limit, stacks=stacks, width=width, styles=styles)
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _head(report: SnapshotReport) -> str:
    parts = [report.path]
    entries = sum(device.entries for device in report.devices)
    begin = min((device.begin_us for device in report.devices if device.begin_us), default=0)
    end = max((device.end_us for device in report.devices), default=0)
    if entries:
        span = f" in {time_text((end - begin) * 1000) or '0'}" if begin else ""
        parts.append(f"{_counted(entries, 'entry', 'entries')} of history{span}")
    if 0 < end < 1 << 53:
        taken = datetime.fromtimestamp(end / 1e6, timezone.utc)
        parts.append(f"until {taken:%Y-%m-%d %H:%M:%S} UTC")
    parts += [f"{name}={value}" for name, value in report.settings.items()]
    if not report.devices:
        parts.append("no device was used")
    return printable(" · ".join(parts))


def _table(moment: SnapshotMoment, limit: int, *, stacks: bool, width: int, styles: Styles) -> Iterator[str]:
    rows = moment.holders[:limit] if limit else moment.holders
    if not rows:
        yield "nothing"
        return
    yield from render(
        text_columns(holder_columns(moment.allocated_bytes), rows, styles), width, title_style=styles.title
    )
    if len(rows) < len(moment.holders):
        yield styles.quiet(shown_words(len(rows), len(moment.holders)))
    for row in rows if stacks else []:
        for stack in row.stacks:
            yield ""
            yield printable(f"{holder_place(row)}: {bytes_text(stack.size_bytes)} in {_counted(stack.blocks, 'block')}")
            yield from (f"    {printable(frame)}" for frame in stack.frames or ["no frame that has a name"])


def snapshot_json(report: SnapshotReport, *, limit: int = 0, stacks: bool = False) -> str:
    """The report as JSON text, in ASCII; with `limit` each table has so many rows at most, and `counts` how many."""
    found: dict[str, Any] = msgspec.to_builtins(report)
    for device in found["devices"]:
        moments = [device["peak"], *device["failures"], *([device["growth"]] if device["growth"] else [])]
        for moment in moments:
            rows = moment["holders"]
            moment["count"] = len(rows)
            moment["holders"] = rows[:limit] if limit else rows
            for row in rows if not stacks else []:
                row.pop("stacks", None)
    return json.dumps({"snapshot_format": SNAPSHOT_FORMAT, **found}, indent=1)


_FIELDS = ("kind", "file", "line", "function", "category", "size_bytes", "blocks")


def snapshot_csv(report: SnapshotReport, *, limit: int = 0) -> str:
    """What was live, as one table: at each device's peak, and when allocations failed."""
    rows = [
        [device.device, name, moment.time_us, *(getattr(row, one) for one in _FIELDS)]
        for device in report.devices
        for name, moment in _moments(device)
        for row in (moment.holders[:limit] if limit else moment.holders)
    ]
    return csv_text(("device", "moment", "time_us", *_FIELDS), rows)


def _moments(device: SnapshotDevice) -> Sequence[tuple[str, SnapshotMoment]]:
    return [("peak" if device.has_peak else "end", device.peak), *(("failure", one) for one in device.failures)]
