"""What the page of lines is answered, on built profiles: sums, texts, one line's details."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import built_profiles
from built_profiles import MODEL, MS, TRAIN
from deepscope.dashboard.page_answer import Choice
from deepscope.dashboard.pages.line_details import LineDetails, LineQuestion, line
from deepscope.dashboard.pages.lines import FileQuestion, FileText, file, line_list, lines
from deepscope.dashboard.pages.overview import overview
from deepscope.errors import OptionError
from deepscope.records import CallNode, Line, Part, PartKey, Partner, Profile, SourceFile
from deepscope.records.lines import FrameworkPart
from one_profile import OneProfile

WEIGHTS = "/env/lib/python3.12/site-packages/torch/nn/modules/linear.py"


def text_of(profile: Profile, path: str) -> FileText:
    return file(OneProfile(profile), FileQuestion(file=path))


def details_of(profile: Profile, path: str, number: int, **more: object) -> LineDetails:
    return line(OneProfile(profile), LineQuestion(file=path, line=number, **more))  # type: ignore[arg-type]


def test_files_have_the_sums_of_their_lines_and_those_of_libraries_stand_apart() -> None:
    profile = built_profiles.training()
    profile.library_lines = [built_profiles.line(WEIGHTS, 125, "Linear.forward", 0, total_device_ns=30 * MS)]
    profile.lines.append(built_profiles.line("/opt/tools/helper.py", 3, "help", 0, self_cpu_ns=MS))
    found = lines(OneProfile(profile), Choice())
    by_name = {one.name: one for one in found.files}
    cost, total = ([column.key for column in found.columns].index(key) for key in ("cost", "total"))
    assert next(one.name for one in found.files) == "nets/model.py"
    assert by_name["nets/model.py"].values[cost] == 71 * MS
    assert by_name["nets/model.py"].values[total] is None
    assert (by_name["nets/model.py"].group, by_name["nets/model.py"].lines) == ("project", 2)
    assert by_name["/opt/tools/helper.py"].group == "outside"
    assert found.files[-1].group == "library"
    assert found.wholes[cost] == 105 * MS + profile.no_line.cost_ns
    assert [one.name for one in found.rest] == ["(no user line)"]


def test_the_frameworks_own_cost_is_a_row_and_no_part_of_the_line_that_calls_it() -> None:
    profile = built_profiles.training()
    profile.lines[2].framework_ns = 4 * MS
    profile.framework = [FrameworkPart(framework="Lightning", part="loops", file=TRAIN, line=5, cost_ns=4 * MS)]
    found = lines(OneProfile(profile), Choice())
    assert next((one.name, one.values[0]) for one in found.rest) == ("(Lightning)", 4 * MS)
    listed = line_list(OneProfile(profile), Choice()).lines
    cost = [one.key for one in listed.columns].index("cost")
    costs = {str(row[0]): row[cost] for row in listed.rows}
    assert (costs["train.py:5"], costs["(Lightning)"]) == (22 * MS, 4 * MS)
    assert sum(int(cost or 0) for cost in costs.values()) == found.wholes[0]
    shown = {one.place: (one.cost_per_step_ns, one.share) for one in overview(OneProfile(profile), Choice()).lines}
    assert shown["train.py:5"] == (22 * MS / profile.totals.steps, 22 * MS / found.wholes[0])


def test_heat_is_relative_to_what_lines_are_shown_to_cost() -> None:
    profile = built_profiles.training()
    largest = lines(OneProfile(profile), Choice()).largest
    profile.lines[2].framework_ns = 400 * MS
    profile.lines[2].cost_ns += 400 * MS
    profile.lines[2].idle_ns += 400 * MS
    found = text_of(profile, TRAIN)
    assert found.largest == largest
    assert max(row.values[0] for row in found.rows) <= largest[0]


def test_a_line_in_two_functions_is_one_row_whose_totals_are_not_added() -> None:
    profile = built_profiles.training()
    profile.lines.append(built_profiles.line(MODEL, 42, "Net.forward.<locals>.<listcomp>", 2 * MS))
    found = text_of(profile, MODEL)
    row = next(row for row in found.rows if row.line == 42)
    keys = [column.key for column in found.columns]
    assert row.values[keys.index("self")] == 52 * MS
    assert row.values[keys.index("total")] == 50 * MS
    assert row.functions == ["Net.forward", "Net.forward.<locals>.<listcomp>"]
    inner = details_of(profile, MODEL, 42, function="Net.forward.<locals>.<listcomp>")
    assert inner.functions == row.functions
    assert inner.cost_ns == 2 * MS


def test_text_is_what_ran_and_nothing_in_it_turns_the_writing_direction() -> None:
    profile = built_profiles.training()
    profile.files[TRAIN] = SourceFile(text="import os\n\tx = '\u202eevil'  # \x1b[2J\n")
    found = text_of(profile, TRAIN)
    assert found.text == ["import os", "    x = '\\u202eevil'  # \\x1b[2J", ""]
    assert found.missing == ""
    assert [row.line for row in found.rows] == [5]


def test_a_file_on_this_machine_is_read_only_where_it_is_what_ran(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "net.py"
    path.write_text("x = 1\n", encoding="utf-8")
    profile = built_profiles.training()
    profile.lines.append(built_profiles.line(str(path), 1, "f", MS))
    profile.files[str(path)] = SourceFile(sha256=hashlib.sha256(b"x = 1\n").hexdigest())
    assert text_of(profile, str(path)).text == ["x = 1", ""]
    path.write_text("secret = 1\n", encoding="utf-8")
    changed = text_of(profile, str(path))
    assert changed.text == []
    assert "not here as it was" in changed.missing
    profile.files[str(path)] = SourceFile(sha256=hashlib.sha256(b"").hexdigest())
    path.unlink()
    path.mkdir()
    assert text_of(profile, str(path)).text == []


def test_a_device_that_a_trace_names_is_not_read() -> None:
    profile = built_profiles.training()
    profile.files["/dev/zero"] = SourceFile(sha256="0" * 64)
    assert text_of(profile, "/dev/zero").text == []


def test_files_and_lines_that_the_profile_does_not_have_are_refused() -> None:
    with pytest.raises(OptionError, match="no such file"):
        text_of(built_profiles.training(), "/etc/passwd")
    with pytest.raises(OptionError, match="nothing was measured"):
        details_of(built_profiles.training(), TRAIN, 4)


def test_what_a_line_costs_is_divided_among_causes() -> None:
    found = details_of(built_profiles.training(), MODEL, 42)
    assert sum(cause.time_ns for cause in found.causes) == found.cost_ns == 51 * MS
    assert [(cause.name, cause.time_ns) for cause in found.causes][:2] == [
        ("moving memory", 30 * MS),
        ("computing", 18 * MS),
    ]
    assert found.verdict == "memory-bound"
    assert "of the H100" in found.why
    assert [one.code for one in found.findings] == ["DS018"]
    assert found.cost_share == pytest.approx(51 / 120)


def test_callers_lead_from_the_outermost_line_with_what_the_line_calls() -> None:
    found = details_of(built_profiles.training(), MODEL, 42)
    assert [([frame.place for frame in path.frames], path.self_ns, path.total_ns) for path in found.callers] == [
        (["train.py:5"], 50 * MS, 58 * MS)
    ]
    outermost = details_of(built_profiles.training(), TRAIN, 5)
    assert [(path.frames, path.total_ns, path.cpu_ns) for path in outermost.callers] == [([], 90 * MS, 16 * MS)]


def test_a_line_of_a_library_is_called_from_the_line_whose_work_it_is() -> None:
    profile = built_profiles.training()
    profile.library_lines = [built_profiles.line(WEIGHTS, 125, "Linear.forward", 0, total_device_ns=30 * MS)]
    profile.places = [PartKey("library", "Linear.forward", WEIGHTS, 125), PartKey("kernel", "gemm")]
    profile.parts = [Part(1, -1, 0, 5 * MS), Part(1, 0, 1, 25 * MS)]
    found = details_of(profile, WEIGHTS, 125)
    assert found.is_library
    assert [([frame.place for frame in path.frames], path.self_ns, path.total_ns) for path in found.callers] == [
        (["train.py:5", "nets/model.py:42"], 5 * MS, 30 * MS)
    ]
    assert [(node.kind, node.name, node.total_ns) for node in found.below] == [
        ("line", "Linear.forward", 30 * MS),
        ("kernel", "gemm", 25 * MS),
    ]


def test_the_work_of_no_line_has_details_too() -> None:
    found = details_of(built_profiles.training(), "", 0)
    assert (found.place, found.below[0].total_ns) == ("(no user line)", 10 * MS)


def test_notes_say_what_numbers_are_of() -> None:
    profile = built_profiles.training()
    profile.lines[0].shared_ns = MS
    profile.lines[0].shared_with = [Partner(TRAIN, 5, MS)]
    found = details_of(profile, MODEL, 42)
    assert found.notes == ["with its parts of kernels that were fused from several lines"]
    assert [(one.place, one.shared_ns) for one in found.fused_with] == [("train.py:5", MS)]
    assert details_of(built_profiles.training(), MODEL, 17).notes == ["calls compiled code"]
    assert details_of(built_profiles.cpu_only(), TRAIN, 2).notes == ["of the whole function that begins here"]


def test_memory_that_a_line_holds_at_the_peak_is_told_by_what_held_it() -> None:
    found = details_of(built_profiles.with_memory(), MODEL, 42)
    assert [(one.label, one.value) for one in found.held] == [("activations", 4 << 30)]


def test_without_call_paths_it_is_said_why_there_is_no_tree() -> None:
    profile = built_profiles.training()
    profile.call_tree = []
    assert "no call paths" in details_of(profile, MODEL, 42).note


def test_names_of_strangers_are_safe_to_show() -> None:
    profile = built_profiles.hostile()
    evil = profile.lines[0]
    profile.lines[0] = Line(**{**msgspec.structs.asdict(evil), "file": evil.file.replace("\ud800", "")})
    assert all(one.name.isprintable() for one in lines(OneProfile(profile), Choice()).files)
    listed = line_list(OneProfile(profile), Choice()).lines
    assert all(cell.isprintable() for row in listed.rows for cell in row if isinstance(cell, str))


def test_a_deep_recursion_is_cut() -> None:
    profile = built_profiles.training()
    profile.call_tree = [CallNode(place - 1, 0, MS if place == 999 else 0, 0, 0) for place in range(1000)]
    found = details_of(profile, MODEL, 42)
    assert len(found.callers) == 40
    assert found.callers_left_out == 960
    assert max(len(path.frames) for path in found.callers) <= 60
