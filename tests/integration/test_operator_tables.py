"""Operators by shapes and stacks, kernels and parts of a trace: on every recorded trace, parts sum to the whole."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis import build
from deepscope.analysis.ownership.attribution import Attribution, attribute
from deepscope.records import NO_OPERATOR, PHASES, Operator, OperatorInDetail, Profile
from deepscope.trace.kinds import OPERATOR_KINDS, operator_kind
from deepscope.trace.read import read_trace
from recorded_traces import each_trace


@pytest.fixture(scope="module", params=each_trace())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@lru_cache(maxsize=1)
def attributed(path: Path) -> Attribution:
    return attribute(read_trace(path))


def profile_of(path: Path, **view: Any) -> Profile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "attribute", lambda _: attributed(path))
        return build.build_profile(attributed(path).trace, **view)


@lru_cache(maxsize=1)
def whole(path: Path) -> Profile:
    return profile_of(path)


SUMS = [name for name, hint in Operator.__annotations__.items() if hint == "Sum"]


@pytest.mark.parametrize("details", [("shapes",), ("stacks",), ("shapes", "stacks")])
def test_operators_in_detail_sum_to_the_operators(path, details):
    detailed = profile_of(path, details=details).operators_in_detail
    sums: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for row in detailed:
        for name in SUMS:
            sums[row.name][name] += getattr(row, name)
    assert len({(row.name, row.in_shapes, row.stack) for row in detailed}) == len(detailed)
    expected = {row.name: {name: getattr(row, name) for name in SUMS} for row in whole(path).operators}
    assert dict(sums) == expected
    assert len(SUMS) > 8


def test_what_stands_in_a_row_is_in_bounds(path):
    for row in whole(path).operators:
        assert row.self_device_ns <= row.total_device_ns
        assert row.tensor_core_self_ns <= row.self_device_ns
        assert row.tensor_core_self_ns <= row.tensor_core_total_ns <= row.total_device_ns
        assert row.tensor_core_eligible or not row.tensor_core_total_ns
    for detail in profile_of(path, details=("shapes",)).operators_in_detail:
        assert isinstance(detail, OperatorInDetail)
        assert detail.kind_total_device_ns <= detail.total_device_ns
        assert not detail.calls or detail.max_self_cpu_ns * detail.calls >= detail.self_cpu_ns
        assert detail.max_self_device_ns <= detail.self_device_ns


def test_totals_of_kinds_hold_each_nanosecond_once(path):
    """Recomputed in plain Python: a piece of work counts for each kind that stands above it."""
    of = attributed(path)
    operators, work, strings = of.operators, of.work, of.trace.strings
    caller, names = operators.caller.tolist(), of.trace.events.name[operators.nodes].tolist()
    kinds = {name: operator_kind(strings[name]) for name in set(names)}
    expected: dict[str, int] = defaultdict(int)
    around = operators.around.tolist()
    for node, duration in zip(work.node.tolist(), work.duration_ns.tolist(), strict=True):
        at = around[node] if node >= 0 else -1
        above = set()
        while at >= 0:
            above.add(kinds[names[at]])
            at = caller[at]
        for kind in above:
            expected[kind] += duration
    found: dict[str, int] = defaultdict(int)
    for row in profile_of(path, details=("shapes",)).operators_in_detail:
        if row.name == NO_OPERATOR:
            continue
        found[operator_kind(row.name)] += row.kind_total_device_ns
    assert {kind: ns for kind, ns in found.items() if ns} == {kind: ns for kind, ns in expected.items() if ns}
    assert set(found) <= set(OPERATOR_KINDS)


def test_phases_sum_to_the_whole(path):
    profile = whole(path)
    parts = {phase: profile_of(path, phase=phase) for phase in PHASES}
    for name in ("device_ns", "idle_ns", "wall_ns", "launches", "operators", "flops", "compiled_at_call_ns"):
        assert sum(getattr(part.totals, name) for part in parts.values()) == getattr(profile.totals, name), name
    for phase in profile.phases:
        assert parts[phase.name].totals.device_ns == phase.device_ns
        assert parts[phase.name].totals.wall_ns == phase.wall_ns
    for table, key, numbers in (
        ("lines", ("file", "line", "function"), ("self_device_ns", "self_cpu_ns", "idle_ns", "calls", "launches",
                                                 "bytes_allocated", "wait_ns", "flops", "backward_device_ns")),
        ("functions", ("file", "line", "function"), ("self_device_ns", "total_device_ns", "self_cpu_ns")),
        ("operators", ("name",), ("calls", "self_device_ns", "self_cpu_ns", "flops", "allocated_bytes")),
        ("kernels", ("name", "kind"), ("calls", "device_ns", "launched", "delay_ns", "occupied_ns")),
        ("modules", ("path", "class_name"), ("self_device_ns", "total_device_ns", "self_cpu_ns", "calls", "flops")),
    ):  # fmt: skip
        assert summed([row for part in parts.values() for row in getattr(part, table)], key, numbers) == summed(
            getattr(profile, table), key, numbers
        ), table
    for part in parts.values():
        assert part.part_of is not None
        assert part.part_of.device_ns == profile.totals.device_ns
        assert [step.number for step in part.steps] == [step.number for step in profile.steps]
        own = [line.self_device_ns for line in [*part.lines, part.no_line]]
        assert sum(own) == part.totals.device_ns


def summed(rows: list[Any], key: tuple[str, ...], numbers: tuple[str, ...]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for row in rows:
        sums = found.setdefault(tuple(getattr(row, name) for name in key), [0] * len(numbers))
        for place, name in enumerate(numbers):
            sums[place] += getattr(row, name)
            if name == "self_cpu_ns":  # as recorded: what recording cost is an estimate for all of a line's runs
                sums[place] += getattr(row, "recording_ns", 0)
    return {name: sums for name, sums in found.items() if any(sums)}


def test_a_module_alone_is_its_row_of_the_table(path):
    profile = whole(path)
    for row in sorted(profile.modules, key=lambda row: -row.total_device_ns)[:3]:
        if any(mark in row.path for mark in "*?["):
            continue
        part = profile_of(path, module=row.path)
        same = [one for one in profile.modules if row.path in (one.path, one.class_name)]
        if len(same) > 1:
            continue
        assert part.totals.device_ns == row.total_device_ns
        assert sum(line.self_device_ns for line in [*part.lines, part.no_line]) == row.total_device_ns
        assert sum(one.device_ns for one in part.kernels) in (row.total_device_ns, 0)
        assert part.totals.flops == row.total_flops


def test_the_module_tree_has_roots_and_no_circles_and_sums_to_its_totals(path):
    profile = whole(path)
    by_path = {row.path: row for row in profile.modules}
    for row in profile.modules:
        seen, at = set(), row
        while at.parent:
            assert id(at) not in seen  # a compiled module bears the path of its wrapper, which calls it
            seen.add(id(at))
            if at.parent not in by_path:
                break
            at = by_path[at.parent]
        assert row.total_backward_device_ns <= row.total_device_ns
        assert row.self_device_ns <= row.total_device_ns
        assert row.flops <= row.total_flops
    in_modules = profile_of(path, module="*").totals.device_ns
    assert sum(row.self_device_ns for row in profile.modules) == in_modules


def test_kernels_are_those_of_the_file(path):
    """Read with Python's own JSON."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        document = json.load(stream)
    events = document["traceEvents"] if isinstance(document, dict) else document
    expected: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("cat", "").lower() == "kernel":
            expected[event["name"]].append(event["args"] | {"ns": round(float(event["dur"]) * 1000)})
    found = {row.name: row for row in whole(path).kernels if row.kind in ("kernel", "collective")}
    if len(attributed(path).trace.events) < sum(event.get("ph") == "X" for event in events) or not expected:
        return  # a trace without kernels of this category, or with events whose times cannot be true
    assert set(expected) <= set(found)
    for name, launches in expected.items():
        row = found[name]
        assert row.calls == len(launches)
        assert row.device_ns == sum(one["ns"] for one in launches)
        assert (row.min_ns, row.max_ns) == (min(one["ns"] for one in launches), max(one["ns"] for one in launches))
        registers = [one["registers per thread"] for one in launches if "registers per thread" in one]
        assert (row.min_registers, row.max_registers) == (min(registers, default=0), max(registers, default=0))
        shared = [one["shared memory"] for one in launches if "shared memory" in one]
        assert (row.min_shared_memory_bytes, row.max_shared_memory_bytes) == (
            min(shared, default=0),
            max(shared, default=0),
        )
        blocks = [one["grid"][0] * one["grid"][1] * one["grid"][2] for one in launches if one.get("grid")]
        assert (row.min_blocks, row.max_blocks) == (min(blocks, default=0), max(blocks, default=0))
        weighed = sum(one["ns"] * float(one["blocks per SM"]) for one in launches if "blocks per SM" in one)
        assert row.sm_blocks_ns == pytest.approx(weighed, rel=1e-3, abs=0.001 * row.device_ns + 1)
        if row.grid:
            grids = [one["grid"] for one in launches if one.get("grid")]
            assert grids.count(json.loads(row.grid)) == max(map(grids.count, grids))
