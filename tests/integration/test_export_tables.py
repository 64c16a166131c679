"""Tables of events, on every recorded trace: they sum to the Profile's numbers, and hold the file's own events."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.build import build_profile
from deepscope.analysis.event_tables import EVENT_TABLES, event_table
from deepscope.analysis.ownership.attribution import attribute
from deepscope.dashboard.html_file import LIMIT_BYTES, html_file
from deepscope.records import NO_OPERATOR, Profile
from deepscope.records.columns import ColumnTable
from deepscope.report.exports.call_paths import pprof_profile
from deepscope.report.exports.perfetto import perfetto_text, timelines
from deepscope.report.exports.tensorboard import scalars
from deepscope.trace.read import read_trace
from pprof_message import read_pprof
from recorded_traces import each_trace, own_paths


@pytest.fixture(scope="module", params=each_trace())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@lru_cache(maxsize=1)
def read(path: Path) -> tuple[Analysis, Profile]:
    trace = read_trace(path)
    return analyse(attribute(trace)), build_profile(trace)


def table_of(path: Path, name: str) -> ColumnTable:
    return event_table(read(path)[0], name, rank=3)


def total(table: ColumnTable, name: str) -> int:
    return sum(value for value in table.column(name).plain() if value is not None)


def test_all_columns_of_a_table_are_of_one_length_and_say_what_they_are(path: Path) -> None:
    for name in EVENT_TABLES:
        table = table_of(path, name)
        for column in table.columns:
            values = column.plain()
            assert len(values) == len(table)
            kinds = {"integer": int, "number": float, "text": str, "flag": bool}
            assert {type(value) for value in values} <= {kinds[column.type], type(None)}
            assert column.is_optional or column.name == "rank" or None not in values
        assert set(table.column("rank").plain()) <= {3}


def test_operators_sum_to_the_table_of_operators(path: Path) -> None:
    table, profile = table_of(path, "operator_details"), read(path)[1]
    operators = [one for one in profile.operators if one.name != NO_OPERATOR]
    calls: Counter[str] = Counter(table.column("name").plain())
    assert set(calls) == {one.name for one in operators}
    # A call with a single call of its own name in it is two events, and counts once there.
    assert all(calls[one.name] >= one.calls > 0 for one in operators)
    for column, field in (("device_self_ns", "self_device_ns"), ("host_self_ns", "self_cpu_ns"), ("flops", "flops")):
        found: Counter[str] = Counter()
        for name, value in zip(table.column("name").plain(), table.column(column).plain(), strict=True):
            found[name] += value
        assert found == {one.name: getattr(one, field) for one in operators}
    for own, whole in (("host_self_ns", "host_total_ns"), ("device_self_ns", "device_total_ns")):
        pairs = zip(table.column(own).plain(), table.column(whole).plain(), strict=True)
        assert all(first <= second for first, second in pairs)


def test_kernels_sum_to_the_table_of_kernels_and_to_the_device(path: Path) -> None:
    table, profile = table_of(path, "kernel_details"), read(path)[1]
    found: Counter[tuple[str, str]] = Counter()
    for name, kind, ns in zip(*(table.column(one).plain() for one in ("name", "kind", "duration_ns")), strict=True):
        found[name, kind] += ns
    assert found == {(one.name, one.kind): one.device_ns for one in profile.kernels}
    if profile.metric == "device":
        assert total(table, "duration_ns") == profile.totals.device_ns
    else:
        assert len(table) == 0


def test_statistics_sum_to_the_device_time(path: Path) -> None:
    table, profile = table_of(path, "op_statistic"), read(path)[1]
    assert total(table, "total_ns") == profile.totals.device_ns
    ratio: Counter[int | None] = Counter()
    rows = zip(
        *(table.column(one).plain() for one in ("device", "count", "total_ns", "min_ns", "max_ns", "ratio")),
        strict=True,
    )
    for device, count, whole, least, most, share in rows:
        assert count * least <= whole <= count * most
        ratio[device] += share
    assert all(share == pytest.approx(1) or share == 0 for share in ratio.values())


def test_the_parts_of_each_step_sum_to_it(path: Path) -> None:
    table, profile = table_of(path, "step_trace_time"), read(path)[1]
    parts = ("computing_ns", "communication_not_overlapped_ns", "copies_not_overlapped_ns", "free_ns")
    for *found, whole in zip(*(table.column(one).plain() for one in (*parts, "duration_ns")), strict=True):
        assert min(found) >= 0
        assert sum(found) == whole
    rows = zip(*(table.column(one).plain() for one in ("communication_ns", "overlapped_ns", parts[1])), strict=True)
    assert all(whole == hidden + exposed for whole, hidden, exposed in rows)
    busy = sum(total(table, one) for one in parts[:3])
    assert busy == profile.totals.busy_ns
    if profile.metric == "device":
        assert total(table, "free_ns") == profile.totals.idle_ns + profile.totals.added_ns
    if profile.steps:
        assert set(table.column("step").plain()) <= {step.number for step in profile.steps}


def test_memory_rises_to_the_profiles_peak(path: Path) -> None:
    record, blocks, profile = table_of(path, "memory_record"), table_of(path, "operator_memory"), read(path)[1]
    peaks: dict[str, int] = {}
    for device, level in zip(record.column("device").plain(), record.column("allocated_bytes").plain(), strict=True):
        peaks[device] = max(level, peaks.get(device, level))
    curves = {one.device: max(point.allocated_bytes for point in one.curve) for one in profile.memory.devices}
    assert peaks == curves
    gains = [size for size in record.column("change_bytes").plain() if size > 0]
    begun = [
        size
        for size, at in zip(blocks.column("size_bytes").plain(), blocks.column("allocated_at_ns").plain(), strict=True)
        if at is not None
    ]
    assert sorted(begun) == sorted(gains)
    assert sum(gains) == sum(one.bytes_allocated for one in [*profile.lines, profile.no_line])


def test_collectives_sum_to_those_of_the_lines(path: Path) -> None:
    table, profile = table_of(path, "communication"), read(path)[1]
    rows = [*profile.lines, profile.no_line]
    devices = table.column("device").plain()
    for column, field in (("duration_ns", "collective_ns"), ("not_overlapped_ns", "collective_exposed_ns")):
        values = table.column(column).plain()
        on_devices = sum(value for value, device in zip(values, devices, strict=True) if device is not None)
        assert on_devices == (sum(getattr(one, field) for one in rows) if profile.metric == "device" else 0)
    sizes = [size or 0 for size in table.column("size_bytes").plain()]
    assert len(table) == sum(row.calls for row in profile.collectives)
    assert sum(sizes) == sum(row.bytes for row in profile.collectives)
    assert total(table, "duration_ns") == sum(row.time_ns for row in profile.collectives)
    assert all(hidden >= 0 for hidden in table.column("overlapped_ns").plain())


@pytest.mark.parametrize("path", own_paths(), ids=lambda path: path.name)
def test_a_table_has_the_events_of_the_file(path: Path) -> None:
    with gzip.open(path) as stream:
        events: list[dict[str, Any]] = json.load(stream)["traceEvents"]
    analysis = analyse(attribute(read_trace(path)))
    for table, categories in (
        ("operator_details", {"cpu_op"}),
        ("kernel_details", {"kernel", "gpu_memcpy", "gpu_memset"}),
    ):
        names = Counter(one["name"] for one in events if one.get("ph") == "X" and one["cat"] in categories)
        assert Counter(event_table(analysis, table).column("name").plain()) == names
    on_cpu = analysis.attribution.work.metric != "device"  # else the Profile, too, has the devices' memory alone
    memory = [one["args"] for one in events if one.get("name") == "[memory]"]
    changes = [one["Bytes"] for one in memory if (one["Device Type"] == 0) == on_cpu]
    assert sorted(event_table(analysis, "memory_record").column("change_bytes").plain()) == sorted(changes)


def test_a_timeline_holds_all_device_time_on_tracks_without_overlap(path: Path) -> None:
    analysis, profile = read(path)
    document = json.loads("".join(perfetto_text(timelines([analysis]))))
    check_timeline(document)
    device = [one for one in document["traceEvents"] if one["ph"] == "X" and "duration_ns" in one["args"]]
    if profile.metric == "device":
        assert sum(one["args"]["duration_ns"] for one in device) == profile.totals.device_ns
        assert sum(one["args"]["kernels"] for one in device) == sum(one.calls for one in profile.kernels)
    else:
        assert device == []


def test_a_timeline_is_bounded(path: Path) -> None:
    analysis, profile = read(path)
    full = json.loads("".join(perfetto_text(timelines([analysis]))))
    document = json.loads("".join(perfetto_text(timelines([analysis], limit=400))))
    check_timeline(document)
    tracks = sum(one["name"] == "thread_name" for one in document["traceEvents"])
    for kind in (False, True):
        slices = [
            one
            for one in document["traceEvents"]
            if one["ph"] == "X" and one["pid"] > 1 and ("kernels" in one["args"]) is kind
        ]
        assert len(slices) <= max(400, tracks)
    if profile.metric == "device":
        found = [one["args"] for one in document["traceEvents"] if one["ph"] == "X" and "kernels" in one["args"]]
        assert sum(one["duration_ns"] for one in found) == profile.totals.device_ns
    shown = [sum(one["ph"] == "X" for one in each["traceEvents"]) for each in (full, document)]
    assert shown[0] >= shown[1]


def check_timeline(document: dict[str, Any]) -> None:
    """What the trace event format asks for."""
    named = {(one["pid"], one["tid"]) for one in document["traceEvents"] if one["name"] == "thread_name"}
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in document["traceEvents"]:
        assert event["ph"] in "XCM"
        assert isinstance(event["pid"], int)
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["ts"] >= 0
            assert (event["pid"], event["tid"]) in named
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        if event["ph"] == "C":
            assert event["args"]
            assert all(isinstance(value, int) for value in event["args"].values())
    for slices in tracks.values():
        open_until: list[float] = []
        for start, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= start + 1e-4:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, "slices of a track nest"
            open_until.append(end)


def test_the_page_is_small_and_call_paths_hold_all_time(path: Path) -> None:
    profile = read(path)[1]
    page = html_file(profile)
    assert len(page) < LIMIT_BYTES
    [data] = re.findall(r'<script type="application/json" id="answers">(.*?)</script>', page)
    flame = json.loads(data)["flame?depth=kernel&direction=down"]
    assert sum(flame["own"]) + flame["leftOutNs"] == flame["wholeNs"]
    if "device" in flame["metrics"]:
        assert flame["wholeNs"] == profile.totals.device_ns
    found = read_pprof(pprof_profile(profile))
    assert sum(sample.value[0] for sample in found.sample) == profile.totals.device_ns
    rows = [*profile.lines, profile.no_line]
    assert sum(sample.value[2] for sample in found.sample) == sum(row.self_cpu_ns for row in rows)


def test_scalars_have_each_steps_numbers(path: Path) -> None:
    analysis, profile = read(path)
    found = {(one.tag, one.step): one.value for one in scalars(analysis)}
    for step in profile.steps:
        assert found["deepscope/step_ms", step.number] == step.duration_ns / 1e6
        phases = sum(value for (tag, number), value in found.items() if number == step.number and "/phase_" in tag)
        assert phases == pytest.approx(step.duration_ns / 1e6)
        assert 0 <= found["deepscope/busy_percent", step.number] <= 100
    if not profile.steps and profile.totals.wall_ns:
        assert found["deepscope/step_ms", 0] == profile.totals.wall_ns / 1e6
