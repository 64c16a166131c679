"""Rows chosen by name and time, in every form of the report; what cannot be chosen is an error of one line."""

from __future__ import annotations

import csv
import io
import json

import pytest

import built_profiles
from deepscope.errors import OptionError
from deepscope.report.filters import Filters, check_view
from deepscope.report.json_csv import csv_report, json_report
from deepscope.report.tables import TABLES
from deepscope.report.text_report import text_report

MS = 1_000_000


@pytest.mark.parametrize(
    ("by", "pattern", "names"),
    [
        ("operator", "addmm", ["aten::addmm"]),
        ("operator", "aten::*", ["aten::addmm", "aten::item"]),
        ("operator", "ADDMM", []),
        ("kernel", "*sgemm*", ["void sgemm_128x64<float, 4>(float const*)"]),
        ("kernel", "Memcpy*", ["Memcpy DtoH (Device -> Pageable)"]),
        ("module", "net.*", ["net.attention"]),
        ("module", "Attention", ["net.attention"]),
        ("phase", "*ward", ["forward", "backward"]),
    ],
)
def test_a_row_is_chosen_by_any_of_its_names(by: str, pattern: str, names: list[str]) -> None:
    profile = built_profiles.training()
    report = json.loads(json_report(profile, by=by, filters=Filters(include=(pattern,))))
    rows = report[{"phase": "phases"}.get(by, f"{by}s")]
    assert {row.get("name", row.get("path")) for row in rows} == set(names)
    assert report["filters"]["include"] == [pattern]


@pytest.mark.parametrize("pattern", ["nets/*", "*.py:42", "model.py:*", "model.py", "/home/ada/*/nets/*", "Net.*"])
def test_lines_are_chosen_by_path_place_and_function(pattern: str) -> None:
    rows = json.loads(json_report(built_profiles.training(), filters=Filters(include=(pattern,))))["lines"]
    assert ("model.py", 42) in {(row["file"].rpartition("/")[2], row["line"]) for row in rows}
    assert len(rows) < len(built_profiles.training().lines)


def test_counters_are_chosen_by_what_is_counted_and_of_what() -> None:
    profile = built_profiles.training()
    one = profile.counters[0]
    for name in (one.counter, one.series):
        rows = json.loads(json_report(profile, by="counter", filters=Filters(include=(name,))))["counters"]
        assert {"counter": one.counter, "series": one.series}.items() <= rows[0].items()


def test_what_is_included_and_what_is_excluded_are_the_whole() -> None:
    profile = built_profiles.training()
    chosen, others = (
        json.loads(json_report(profile, filters=one))["lines"]
        for one in (Filters(include=("nets/*",)), Filters(exclude=("nets/*",)))
    )
    both = sum(row["self_device_ns"] for row in [*chosen, *others]) + profile.no_line.self_device_ns
    assert both == profile.totals.device_ns
    assert len(chosen) + len(others) == len(profile.lines)


def test_a_row_that_takes_less_time_goes() -> None:
    report = json.loads(json_report(built_profiles.training(), by="kernel", filters=Filters(min_ns=12 * MS + 1)))
    assert [row["device_ns"] for row in report["kernels"]] == [60 * MS]


def test_the_head_says_what_part_of_the_whole_it_is_and_no_row_stands_for_the_rest() -> None:
    text = text_report(built_profiles.training(), width=200, filters=Filters(include=("nets/*",), min_ns=10 * MS))
    assert "filter   include nets/*, at least 10ms: 2 of 5 rows with 70ms of 100ms (70.0%) of the device time" in text
    assert "(no user line)" not in text
    assert "no operators match" in text_report(
        built_profiles.training(), by="operator", filters=Filters(include=("nothing",))
    )


def test_csv_has_the_chosen_rows_alone() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_report(built_profiles.training(), filters=Filters(exclude=("*.py",))))))
    assert rows == []


@pytest.mark.parametrize("by", TABLES)
def test_each_table_takes_a_filter_or_says_that_it_cannot(by: str) -> None:
    for filters in (Filters(include=("no such name",)), Filters(min_ns=10**18)):
        try:
            filters.check(by)
        except OptionError:
            continue
        assert list(csv.reader(io.StringIO(csv_report(built_profiles.training(), by=by, filters=filters))))[1:] == []


def test_a_table_without_names_or_times_takes_no_filter_for_them() -> None:
    with pytest.raises(OptionError, match="--by step have no names"):
        Filters(include=("3",)).check("step")
    with pytest.raises(OptionError, match="--by memory have no time"):
        Filters(min_ns=1).check("memory")
    for by in ("step", "phase", "memory"):
        with pytest.raises(OptionError, match="rows are of the whole"):
            check_view(by, phase="forward", module="")
        with pytest.raises(OptionError, match="rows are of the whole"):
            check_view(by, phase="", module="*")
    check_view("line", phase="forward", module="*")


def test_hostile_patterns_and_names_print_as_text() -> None:
    evil = "*\x1b[2J*"
    text = text_report(built_profiles.hostile(), by="operator", filters=Filters(include=(evil,)))
    assert "\x1b" not in text
