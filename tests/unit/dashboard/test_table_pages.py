"""The pages of operators, kernels, modules and steps: every figure is the report's, on every trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deepscope.dashboard.page_answer import Choice, Table
from deepscope.dashboard.pages.operators import (
    KernelAsked,
    ModulesAsked,
    OperatorAsked,
    OperatorsAsked,
    kernel,
    kernels,
    modules,
    operator,
    operator_variants,
    operators,
)
from deepscope.dashboard.pages.overview import overview
from deepscope.dashboard.pages.overview_parts import idle_of, training_of
from deepscope.dashboard.pages.steps import steps
from deepscope.errors import OptionError
from deepscope.records import Detail, Profile
from deepscope.report.json_csv import report_object
from deepscope.report.module_tree import folded_modules, plain_modules
from recorded_traces import OWN_TRACES, each_trace, profile_of

DETAILED = 6_000_000
"""Bytes of a trace, unpacked or not, up to which it is read again by shapes and stacks."""


class Shelf:
    """A library with one trace."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.profiles: dict[tuple[Detail, ...], Profile] = {}

    def profile(self, choice: Choice, details: tuple[Detail, ...] = ()) -> Profile:
        """The profile; of all that a choice can say, these tests choose nothing."""
        assert choice.step is None
        if details not in self.profiles:
            self.profiles[details] = profile_of(self.path, details)
        return self.profiles[details]


@pytest.fixture(scope="module", params=each_trace())
def shelf(request: pytest.FixtureRequest) -> Any:
    return Shelf(request.param)


def agreeing(table: Table, rows: Sequence[dict[str, Any]], divided: int = 1) -> int:
    """Compares the columns that are fields of the report's rows; answers how many cells it compared.

    A column that is not there says nothing: the report has zeros or nothing in its field. Nor does a cell of words
    ("no formula").
    """
    assert len(table.rows) + table.left_out == len(rows)
    compared = 0
    for at, column in enumerate(table.columns):
        if column.key in rows[0] and isinstance(rows[0][column.key], (int, float)) and column.kind != "share":
            shown = [(row[at], told[column.key]) for row, told in zip(table.rows, rows, strict=False)]
            shown = [(cell, told) for cell, told in shown if isinstance(cell, (int, float))]
            assert [cell * divided for cell, _ in shown] == pytest.approx([told for _, told in shown], rel=1e-12)
            compared += len(table.rows)
    return compared


def test_operators_are_those_of_the_report(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    table = operators(shelf, OperatorsAsked()).table
    rows = report_object(profile, by="operator")["operators"]
    if not rows:
        assert table.rows == []
        return
    assert agreeing(table, rows) >= 2 * len(table.rows)
    assert len(set(table.keys)) == len(table.rows)
    if table.columns[1].key == "share":
        whole = profile.totals.device_ns
        shares = [row[1] for row in table.rows]
        assert shares == [row["self_device_ns"] / whole for row in rows[: len(shares)]]


def test_kernels_are_those_of_the_report(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    table = kernels(shelf, Choice()).table
    rows = sorted(report_object(profile, by="kernel")["kernels"], key=lambda row: -row["device_ns"])
    if not rows:
        assert table.rows == []
        return
    for row in rows:  # the page has means
        row["delay_ns"] = row["delay_ns"] / row["launched"] if row["launched"] else 0
        row["queued"] = row["queued"] / row["launched"] if row["launched"] else 0
        del row["uses_tensor_cores"]
    assert agreeing(table, rows) >= 4 * len(table.rows)
    assert len(set(table.keys)) == len(table.rows)
    found = kernel(shelf, KernelAsked(key=table.keys[0]))
    assert found.name
    assert sum(line.time_ns for line in found.lines) <= rows[0]["device_ns"]


def test_modules_are_those_of_the_report(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    table = modules(shelf, ModulesAsked()).table
    rows = report_object(profile, by="module")["modules"]
    if not rows:
        assert table.rows == []
        return
    table.columns = [column for column in table.columns if column.key != "name"]
    table.rows = [row[1:] for row in table.rows]
    assert agreeing(table, rows)
    assert len(table.parents) == len(table.rows)
    assert all(-1 <= parent < at for at, parent in enumerate(table.parents))


def test_alike_modules_as_one_are_their_sums(shelf: Any) -> None:
    rows = shelf.profile(Choice()).modules
    plain, folded = plain_modules(rows), folded_modules(rows)
    assert sum(one.modules for one in folded) == len(plain)
    for field in ("self_device_ns", "total_device_ns", "calls", "own_parameters", "launches"):
        assert sum(getattr(one.module, field) for one in folded) == sum(getattr(one.module, field) for one in plain)
    assert all(-1 <= one.parent < at for at, one in enumerate(folded))
    classes: Counter[str] = Counter()
    for one in folded:
        classes[one.module.class_name] += one.modules
    assert classes == Counter(one.module.class_name for one in plain)


def test_steps_are_those_of_the_report(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    answer = steps(shelf, Choice())
    report = report_object(profile, by="step")
    assert (answer.figures == []) == (report["step_times"] is None)
    if report["steps"]:
        times = report["step_times"]
        known = {figure.label: figure.value for figure in answer.figures}
        assert [known[name] for name in ("steps", "mean", "shortest", "median", "p95", "longest")] == [
            times[name] for name in ("count", "mean_ns", "min_ns", "p50_ns", "p95_ns", "max_ns")
        ]
        assert [row[0] for row in answer.table.rows] == [row["number"] for row in report["steps"]]
        durations = [row["duration_ns"] for row in report["steps"]]
        assert [row[1] for row in answer.table.rows] == durations
        assert [bar.duration_ns for bar in answer.bars] == durations
        assert [sum(bar.phases) for bar in answer.bars] == durations
        if answer.slow:
            assert (answer.slow[0].number, answer.slow[0].place != "") == (times["slowest"], times["file"] != "")
            assert answer.slow[0].excess_ns == times["excess_ns"]
    for table, by, key in ((answer.threads, "thread", "threads"), (answer.streams, "stream", "streams")):
        rows = report_object(profile, by=by)[key]
        assert not rows or agreeing(table, [{**row, "threads": None} for row in rows])


def test_idle_time_is_divided_without_rest(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    idle = idle_of(profile)
    assert (idle is None) == (profile.metric != "device" or not profile.lines or not profile.totals.idle_ns)
    if idle is not None:
        assert sum(part.time_ns for part in idle.causes) == idle.whole_ns == profile.totals.idle_ns
        assert sum(line.idle_ns for line in idle.lines) <= idle.whole_ns


def test_phases_and_the_frameworks_parts_are_the_reports(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    found = training_of(profile)
    report = report_object(profile, by="phase")
    assert {part.name: part.time_ns for part in found.phases} == {
        row["name"]: row["wall_ns"] for row in report["phases"] if row["wall_ns"]
    }
    assert Counter(part.time_ns for part in found.parts) == Counter(row["cost_ns"] for row in report["framework"])


def test_the_dearest_lines_are_the_reports(shelf: Any) -> None:
    rows = report_object(shelf.profile(Choice()))["lines"]
    rows.sort(key=lambda row: row["framework_ns"] - row["cost_ns"])
    expected = [(row["share"], row["cost_per_step_ns"]) for row in rows[:5] if row["cost_ns"] > row["framework_ns"]]
    assert [(line.share, line.cost_per_step_ns) for line in overview(shelf, Choice()).lines] == expected


def test_kernels_and_lines_of_an_operator_are_parts_of_the_work(shelf: Any) -> None:
    profile = shelf.profile(Choice())
    for key in operators(shelf, OperatorsAsked()).table.keys[:5]:
        found = operator(shelf, OperatorAsked(key=key))
        if profile.parts and len(found.lines) < 30:
            assert sum(one.time_ns for one in found.kernels) <= sum(one.time_ns for one in found.lines)
        assert sum(one.time_ns for one in found.lines) <= profile.totals.device_ns
        totals = Counter[tuple[str, int]]()
        for line in profile.lines:
            totals[line.file, line.line] += line.self_device_ns
        assert all(one.time_ns <= totals[one.file, one.line] for one in found.lines if one.file)


def test_rows_by_shapes_and_by_kind_sum_to_those_by_name(shelf: Any) -> None:
    if shelf.path.stat().st_size > DETAILED:
        return  # reading it twice more takes too long here; smaller ones tell the same
    whole = sum(row.self_device_ns for row in shelf.profile(Choice()).operators)
    for by in ("shapes", "stacks", "type"):
        table = operators(shelf, OperatorsAsked(by=by)).table  # type: ignore[arg-type]
        if table.left_out or not table.rows:
            continue
        keys = [column.key for column in table.columns]
        if "self_device_ns" in keys:
            assert sum(row[keys.index("self_device_ns")] for row in table.rows) == whole  # type: ignore[misc]
    table = operators(shelf, OperatorsAsked()).table
    names = [column.key for column in table.columns]
    calls = names.index("calls") if "calls" in names else -1
    called = [number for number, row in enumerate(table.rows) if calls >= 0 and row[calls]]  # not "(no operator)"
    if called:
        variants = operator_variants(shelf, OperatorAsked(key=table.keys[called[0]], by="shapes")).table
        column = [one.key for one in variants.columns].index("calls")
        assert sum(row[column] for row in variants.rows) == table.rows[called[0]][calls]  # type: ignore[misc]


def test_a_row_that_is_not_there_is_told() -> None:

    one = Shelf(OWN_TRACES / "grafted-device.json.gz")
    for ask in (
        lambda: kernel(one, KernelAsked(key="none")),  # type: ignore[arg-type]
        lambda: operator(one, OperatorAsked(key="none")),  # type: ignore[arg-type]
    ):
        with pytest.raises(OptionError, match="none"):
            ask()
