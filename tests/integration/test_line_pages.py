"""The pages of lines and the flame graph say what the report says, on every trace."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from deepscope.dashboard.page_answer import Choice
from deepscope.dashboard.pages import line_details as line_module
from deepscope.dashboard.pages.flame import FlameQuestion, flame
from deepscope.dashboard.pages.line_details import LineDetails, LineQuestion, line
from deepscope.dashboard.pages.lines import FileQuestion, file, line_list, lines
from deepscope.report.json_csv import report_object
from deepscope.report.line_report import line_object
from deepscope.report.line_tree import lines_of
from one_profile import OneProfile
from recorded_traces import each_trace, profile_of

FIELDS = {
    "cost": ("cost_ns",),
    "self": ("self_device_ns",),
    "backward": ("backward_device_ns",),
    "idle": ("idle_ns",),
    "wait": ("wait_ns",),
    "cpu": ("self_cpu_ns",),
    "calls": ("calls",),
    "launches": ("launches",),
    "allocated": ("bytes_allocated",),
    "peak": ("peak_bytes",),
    "flops": ("flops",),
    "copies": ("h2d_ns", "d2h_ns", "d2d_ns"),
}
LINES = 60
"""Of a trace, the costliest."""


@pytest.fixture(scope="module", params=each_trace())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@lru_cache(maxsize=1)
def report_of(path: Path) -> dict[str, Any]:
    return report_object(profile_of(path))


def value(row: dict[str, Any], key: str) -> int:
    return sum(row[field] for field in FIELDS[key])


def test_files_and_the_rest_sum_to_what_the_report_has(path: Path) -> None:
    found, report = lines(OneProfile(profile_of(path)), Choice()), report_of(path)
    for at, column in enumerate(found.columns):
        if column.key in FIELDS:
            whole = sum(value(row, column.key) for row in (*report["lines"], report["no_line"]))
            files = sum(one.values[at] or 0 for one in found.files if one.group != "library")
            assert files + sum(one.values[at] for one in found.rest) == whole == found.wholes[at]
    assert found.lines == len(report["lines"])
    assert sum(one.lines for one in found.files if one.group != "library") == len(report["lines"])


def test_the_list_has_every_line_with_the_reports_numbers(path: Path) -> None:
    found, report = line_list(OneProfile(profile_of(path)), Choice()).lines, report_of(path)
    keys = [column.key for column in found.columns]
    shown = sorted(
        (found.files[place[0]], place[1], *(row[keys.index(key)] for key in ("self", "backward") if key in keys))
        for row, place in zip(found.rows, found.places, strict=True)
        if place[0] >= 0
    )
    told = sorted(
        (row["file"], row["line"], *(value(row, key) for key in ("self", "backward") if key in keys))
        for row in report["lines"]
    )
    assert shown == told


def test_a_files_rows_are_the_reports_lines(path: Path) -> None:
    report = report_of(path)
    for name in sorted({row["file"] for row in report["lines"]})[:LINES]:
        found = file(OneProfile(profile_of(path)), FileQuestion(file=name))
        at = [column.key for column in found.columns].index("cost")
        told: dict[int, int] = {}
        for row in report["lines"]:
            if row["file"] == name:
                told[row["line"]] = told.get(row["line"], 0) + row["cost_ns"] - row["framework_ns"]
        assert {row.line: row.values[at] for row in found.rows if not row.is_library} == told


def test_below_a_line_stands_what_the_report_of_the_line_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "NODES", 10**6)
    profile = profile_of(path)
    for place, one in list(enumerate(lines_of(profile)))[:LINES]:
        same = [row for row in lines_of(profile) if (row.file, row.line) == (one.file, one.line)]
        if len({row.function for row in same}) < len(same):
            continue  # the same function as a whole and by its line: the page shows the costlier one
        for fold in (False, True):
            asked = LineQuestion(file=one.file, line=one.line, function=one.function, fold=fold)
            found = line(OneProfile(profile), asked)
            told = line_object(profile, place, fold=fold)
            assert nested(found, 0) == stripped(told["below"])
            assert [cause for cause in found.causes if cause.time_ns <= 0] == []
            if not found.is_library:
                assert sum(cause.time_ns for cause in found.causes) == one.cost_ns - one.framework_ns
                assert found.verdict == told["line"]["verdict"]


def nested(found: LineDetails, number: int) -> tuple[Any, ...]:
    node = found.below[number]
    children = [nested(found, at) for at, one in enumerate(found.below) if at and one.parent == number]
    return (node.kind, node.file, node.line, node.self_ns, node.total_ns, node.backward_ns, node.calls, children)


def stripped(node: dict[str, Any]) -> tuple[Any, ...]:
    times = (node["self_device_ns"], node["total_device_ns"], node["backward_device_ns"], node["calls"])
    return (node["kind"], node["file"], node["line"], *times, [stripped(child) for child in node["children"]])


def test_the_flame_graphs_boxes_sum_to_the_device_time_in_both_directions(path: Path) -> None:
    profile = profile_of(path)
    report = report_of(path)
    rows = [*report["lines"], report["no_line"]]
    wholes = {"device": report["totals"]["device_ns"], "backward": sum(row["backward_device_ns"] for row in rows)}
    for metric, whole in wholes.items():
        for direction in ("down", "up"):
            asked = FlameQuestion(metric=metric, direction=direction)  # type: ignore[arg-type]
            found = flame(OneProfile(profile), asked)
            if metric in found.metrics:
                assert found.whole_ns == whole
                assert sum(found.own) + found.left_out_ns == whole


def test_a_run_against_itself_has_no_difference(path: Path) -> None:
    profile = profile_of(path)
    found = flame(OneProfile(profile, same=profile), FlameQuestion(baseline="same"))
    assert found.before == found.own
    assert found.gone_ns == 0
