"""Where detail was lowered a line stands for its loop or function, and everything that shows it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deepscope.analysis.build import build_profile
from deepscope.records import Profile
from deepscope.report.text_report import text_report
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


def profile_of(folder: Path, unit: int = 1, **account: Any) -> Profile:
    trace = TraceBuilder()
    trace.line("a.py", 3, "main", 0, 1_000 * unit).op("aten::mm", 100 * unit, 300 * unit)
    trace.line("a.py", 9, "count", 1_000 * unit, 500 * unit).op("aten::add", 1_100 * unit, 50 * unit)
    trace.line("a.py", 5, "main", 1_500 * unit, 500 * unit).op("aten::mm", 1_600 * unit, 100 * unit)
    document = json.loads(trace.dumps())
    document["deepscope"]["lines"] = account
    path = folder / "t.pt.trace.json"
    path.write_text(json.dumps(document))
    return build_profile(read_trace(path))


def scope_of(folder: Path, line: int) -> int:
    document = json.loads((folder / "t.pt.trace.json").read_text())
    return next(number for number, row in enumerate(document["deepscope"]["scopes"]) if row[2] == line)


def test_a_line_that_stands_for_more_is_not_exact_and_nothing_is_lost(tmp_path: Path) -> None:
    whole = profile_of(tmp_path)
    numbers = {line: scope_of(tmp_path, line) for line in (3, 5, 9)}
    lowered = profile_of(tmp_path, lowered=[[numbers[5], "loop"], [numbers[9], "function"]])
    assert {row.line: (row.exact, row.of_loop) for row in lowered.lines} == {
        3: (True, False),
        5: (False, True),
        9: (False, False),
    }
    assert [row.self_device_ns for row in lowered.lines] == [row.self_device_ns for row in whole.lines]
    assert lowered.resolved.line_ns + lowered.resolved.function_ns == whole.resolved.line_ns


def test_what_was_lowered_is_named(tmp_path: Path) -> None:
    profile_of(tmp_path)
    numbers = {line: scope_of(tmp_path, line) for line in (3, 5, 9)}
    rows = [[numbers[5], "loop"], [numbers[9], "function"], [numbers[3], "caller"]]
    profile = profile_of(tmp_path, lowered=rows, modules_only=True)
    said = "\n".join(profile.trace.warnings)
    for words in ("a.py:5 main", "a.py:9 count", "a.py:3 main", "only modules were recorded"):
        assert words in said


def test_an_account_that_is_not_as_the_format_says_changes_nothing(tmp_path: Path) -> None:
    whole = profile_of(tmp_path)
    for odd in (
        [[99, "loop"]],
        [["x", "loop"]],
        [[0, "all"]],
        [[0]],
        "loop",
        {"0": "loop"},
        [None],
        [[True, "loop"]],
        5,
        [[0, ["loop"]]],
    ):
        profile = profile_of(tmp_path, lowered=odd, total_ns="much", modules_only="no")
        assert [row.exact for row in profile.lines] == [row.exact for row in whole.lines]
        assert profile.totals.recording_ns == 0


def test_the_recorders_total_holds_what_entries_alone_do_not(tmp_path: Path) -> None:
    assert profile_of(tmp_path, cost_ns=10, total_ns=700, entries=3).totals.recording_ns == 700
    assert profile_of(tmp_path, cost_ns=10, total_ns=5, entries=3).totals.recording_ns == 30


def slowed_ns(folder: Path, **account: Any) -> int:
    """Of 1,550 µs of Python on lines: 700, 450 and 400 µs outside of operators."""
    given = {"cost_ns": 10, "entries": 3, "calls": 0, "left_alone": 0, "total_ns": 50_000, "slowdown": 4.0}
    return profile_of(folder, unit=1_000, **(given | account)).totals.recording_ns - 50_000


def test_python_that_runs_slower_while_it_is_recorded_counts_as_recording(tmp_path: Path) -> None:
    assert slowed_ns(tmp_path, left_alone=1_000) == 1_500_000 * 3 // 4
    assert slowed_ns(tmp_path, left_alone=1_000, on_core=0.5) == 725_000 * 3 // 4
    assert slowed_ns(tmp_path, slowdown=1.0, left_alone=1_000) == 0


def test_code_in_c_is_not_counted_as_python_that_runs_slower(tmp_path: Path) -> None:
    assert slowed_ns(tmp_path, left_alone=17) == 20 * 3_000 * 3 // 4
    number = scope_of(tmp_path, 9)
    assert slowed_ns(tmp_path, lowered=[[number, "function"]]) == (449_990 + 3 * 3_000) * 3 // 4


def test_a_slowdown_that_cannot_be_is_none(tmp_path: Path) -> None:
    for odd in ("much", -4.0, 0.5, 1e9, True, None, [4.0]):
        assert slowed_ns(tmp_path, slowdown=odd, left_alone=1_000) == 0
    for odd in ("half", -0.5, 2.0, None, True):
        assert slowed_ns(tmp_path, on_core=odd, left_alone=1_000) == 1_500_000 * 3 // 4


def test_recorded_steps_are_set_beside_plain_ones_and_nothing_is_said_without_these(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 2_000_000).line("a.py", 3, "main", 0, 1_000_000).op("aten::mm", 100, 300_000)

    def times(steps: int, mean: int, low: int, high: int) -> dict[str, object]:
        wall = {"mean_ns": mean * 1000, "quartiles_ns": [low * 1000, mean * 1000, high * 1000]}
        return {"steps": steps, "wall": wall, "cpu": wall}

    def report(**steps: dict[str, object]) -> str:
        document = json.loads(trace.dumps())
        document["deepscope"]["lines"] = {"cost_ns": 300_000, "total_ns": 300_000, "entries": 1}
        document["deepscope"] |= steps
        path = tmp_path / "t.pt.trace.json"
        path.write_text(json.dumps(document))
        return text_report(build_profile(read_trace(path)))

    recorded = times(3, 2000, 1900, 2100)
    longer = " ".join(report(recorded_steps=recorded, plain_steps=times(40, 1000, 900, 1100)).split())
    assert "a recorded step took 2ms [1.90ms to 2.10ms], a plain one 1ms [900µs to 1.10ms]" in longer
    assert "recording added 1ms, of which 300µs are taken off the steps" in longer
    alike = " ".join(report(recorded_steps=recorded, plain_steps=times(40, 1500, 900, 1950)).split())
    assert "no more than they differ among themselves" in alike
    assert "recording added" not in alike
    assert "cannot be told: no plain steps" in " ".join(report(recorded_steps=recorded).split())


def test_what_gave_way_of_libraries_is_told_apart_from_the_users_code(tmp_path: Path) -> None:
    path = tmp_path / "t.pt.trace.json"
    builder = TraceBuilder().line("/p/a.py", 3, "main", 0, 1_000).line("/lib/b.py", 7, "forward", 100, 50, library=True)
    document = json.loads(builder.dumps())
    document["deepscope"]["lines"] = {"lowered": [[0, "caller"], [1, "caller"]], "libraries_ended": True}
    path.write_text(json.dumps(document))
    said = build_profile(read_trace(path)).trace.warnings
    assert len(said) == 3
    assert (
        "library functions too expensive to record, so that they stand at the lines that call them: b.py:7 forward"
        in said
    )
    assert any(one.startswith("library lines were too expensive to record") for one in said)
    assert any("a.py:3 main" in one and "library" not in one for one in said)
