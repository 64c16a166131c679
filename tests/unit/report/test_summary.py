"""The summary at the end of a run: one screen, the costliest lines first, and where more is."""

from __future__ import annotations

import pytest

import built_profiles
from deepscope.lightning.runs import summary
from deepscope.records import FrameworkPart, Profile
from deepscope.report.table_column import bar
from deepscope.report.terminal import cell_len
from deepscope.report.text_report import text_report

MS = 10**6


def many_lines(count: int = 300) -> Profile:
    profile = built_profiles.training()
    first = profile.lines[0]
    profile.lines = [
        built_profiles.line(first.file, number, "main", (count - number) * MS) for number in range(1, count)
    ]
    return profile


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 24), (120, 50), (60, 16)])
def test_it_fits_the_screen_and_names_the_command_for_more(width: int, height: int) -> None:
    text = summary(many_lines(), width=width, height=height)
    lines = text.splitlines()
    assert len(lines) < height or height < 20, text
    command = next(line for line in lines if line.startswith("more: "))
    assert "deepscope report " in command
    assert all(cell_len(line) <= width for line in lines if line != command)


def test_without_findings_it_says_whether_there_is_nothing_to_change_where_that_fits() -> None:
    profile = many_lines()
    profile.findings = []
    assert "Nothing was found that would pay to change." in summary(profile, width=100, height=24)
    profile.totals.steps = 1
    words = summary(profile, width=80, height=24)
    assert "Cannot tell from a trace with one step" in words
    assert "again in each step." in words
    assert len(words.splitlines()) < 24
    assert "Cannot tell" not in summary(profile, width=80, height=16)


def test_the_number_of_rows_can_be_chosen() -> None:
    assert len(summary(many_lines(), rows=0, height=24).splitlines()) > 299
    assert "(289 more)" in summary(many_lines(), rows=10)


def rows_of(text: str) -> list[str]:
    table = text.split("\n\n")[1].splitlines()
    assert table[0].lstrip().startswith("share")
    return table[1:]


def share_in(row: str) -> float:
    first = row.split(maxsplit=1)[0]
    return 0.0 if not first.endswith("%") or first.startswith("<") else float(first[:-1])


@pytest.mark.parametrize("sort", [None, "self", "total", "cpu", "backward", "idle"])
@pytest.mark.parametrize("by", ["line", "function"])
def test_the_share_is_what_orders_the_rows(by: str, sort: str | None) -> None:
    rows = [row for row in rows_of(text_report(built_profiles.training(), by=by, sort=sort, width=160)) if ".py" in row]
    shares = [share_in(row) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0 or (by, sort) == ("function", "idle"), "those functions have no idle time"


def test_what_the_framework_costs_is_a_row_and_no_part_of_its_line() -> None:
    profile = built_profiles.training()
    line = max(profile.lines, key=lambda one: one.idle_ns)
    before = next(row for row in rows_of(text_report(profile, width=200)) if f":{line.line} " in row)
    line.framework_ns = line.idle_ns // 2
    profile.framework = [
        FrameworkPart(framework="Lightning", part=part, file=line.file, line=line.line, cost_ns=line.framework_ns // 2)
        for part in ("loops", "callback \x1b[31mEvil")
    ]
    text = text_report(profile, width=200)
    rows = rows_of(text)
    own = next(row for row in rows if "(Lightning)" in row)
    assert "its own loops" in own
    assert "\x1b" not in text
    after = next(row for row in rows if f":{line.line} " in row)
    assert share_in(after) < share_in(before)
    assert abs(share_in(after) + share_in(own) - share_in(before)) < 0.2


@pytest.mark.parametrize(("value", "expected"), [(100, "████"), (50, "██"), (3, "▏"), (1, ""), (0, ""), (-5, "")])
def test_a_bar_is_as_long_as_its_part_of_the_largest(value: int, expected: str) -> None:
    assert bar(value, 100, 4) == expected


def test_a_profile_without_lines_has_its_operators() -> None:
    profile = built_profiles.training()
    profile.lines = []
    assert profile.operators[0].name in summary(profile, width=160)
