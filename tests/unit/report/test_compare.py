"""Lines of two runs are matched by what they say."""

import re

import built_profiles
from deepscope.records import Profile
from deepscope.report.compare import compare_profiles, comparison_object, comparison_text

MS = 1_000_000


def edited() -> Profile:
    """The same run after an edit: elsewhere on disk, a line moved, one slower, one gone, one new, four steps."""
    profile = built_profiles.training()
    profile.trace.project_root = "/somewhere/else"
    for line in profile.lines:
        line.file = line.file.replace(built_profiles.ROOT, "/somewhere/else")
    profile.lines[0].line = 52
    profile.lines[1].self_device_ns = 60 * MS
    del profile.lines[3]
    profile.lines.append(built_profiles.line("/somewhere/else/new.py", 1, "fresh", 4 * MS, text="y = z"))
    profile.totals.steps = 4
    return profile


def test_lines_are_matched_by_text_wherever_they_moved() -> None:
    deltas = {delta.function: delta for delta in compare_profiles(built_profiles.training(), edited())}
    forward = deltas["Net.forward"]
    assert (forward.file, forward.line, forward.old_ns, forward.new_ns) == ("nets/model.py", 52, 25 * MS, 12.5 * MS)
    assert deltas["Net.embed"].change_ns == 15 * MS - 10 * MS
    assert (deltas["数える"].old_ns, deltas["数える"].new_ns) == (4 * MS, None)
    assert (deltas["fresh"].old_ns, deltas["fresh"].new_ns) == (None, MS)
    assert deltas["(no user line)"].change_ns == -2.5 * MS


def test_the_changes_sum_to_that_of_the_whole() -> None:
    old, new = built_profiles.training(), edited()
    whole = sum(line.self_device_ns for line in new.lines) + new.no_line.self_device_ns
    assert sum(delta.change_ns for delta in compare_profiles(old, new)) == whole / 4 - old.totals.device_ns / 2


def test_a_run_compared_with_itself_has_not_changed() -> None:
    text = comparison_text(built_profiles.training(), built_profiles.training())
    assert "no line has changed" in text
    assert all(delta.change_ns == 0 for delta in compare_profiles(built_profiles.training(), built_profiles.training()))


def test_alike_lines_are_matched_in_their_order() -> None:
    old, new = built_profiles.training(), built_profiles.training()
    for profile, shift in ((old, 0), (new, 5)):
        profile.lines = [
            built_profiles.line(built_profiles.MODEL, 10 + shift, "f", 1 * MS, text="x = g(x)"),
            built_profiles.line(built_profiles.MODEL, 15 + shift, "f", 2 * MS, text="x = g(x)"),
        ]
    assert all(delta.change_ns == 0 for delta in compare_profiles(old, new))


def test_the_table_fits_and_shows_the_largest_change_first() -> None:
    text = comparison_text(built_profiles.training(), edited(), width=80)
    assert max(map(len, text.splitlines())) <= 100
    first = next(line for line in text.splitlines() if re.match(r"\s*[-+]?[\d.]+ms", line))
    assert first.split()[:3] == ["-12.5ms", "25ms", "12.5ms"]
    assert "gone" in text
    assert "\x1b" not in comparison_text(built_profiles.hostile(), built_profiles.cpu_only())


def test_the_object_holds_every_line_or_those_asked_for() -> None:
    report = comparison_object(built_profiles.training(), edited())
    assert len(report["lines"]) == 7
    assert report["old"]["step_ns"] == 50 * MS
    assert len(comparison_object(built_profiles.training(), edited(), limit=2)["lines"]) == 2
