"""Snapshots that people can read: `DEEPSCOPE_REGENERATE=1 python -m pytest tests/unit/report` writes them anew."""

import re
from pathlib import Path

import pytest
from wcwidth import wcswidth as cell_len

import built_profiles
from deepscope.errors import OptionError
from deepscope.records.ranks import merge_profiles
from deepscope.report.json_csv import json_report
from deepscope.report.tables import TABLES
from deepscope.report.text_report import text_report
from golden import matches_golden
from recorded_traces import each_trace, profile_of

PROFILES = {
    "training": built_profiles.training,
    "cpu-only": built_profiles.cpu_only,
    "hostile": built_profiles.hostile,
    "out-of-memory": built_profiles.out_of_memory,
}


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("name", PROFILES)
def test_the_report_reads_as_its_snapshot(name: str, width: int) -> None:
    matches_golden(text_report(PROFILES[name](), width=width, limit=3), f"report/{name}-{width}.txt")


@pytest.mark.parametrize("by", [name for name in TABLES if name != "line"])
def test_each_table_reads_as_its_snapshot(by: str) -> None:
    matches_golden(text_report(built_profiles.training(), by=by, width=100), f"report/training-by-{by}.txt")


@pytest.mark.parametrize("name", ["with_memory", "out_of_memory"])
def test_the_table_of_memory_reads_as_its_snapshot(name: str) -> None:
    profile = getattr(built_profiles, name)()
    matches_golden(text_report(profile, by="memory", width=110), f"report/{name.replace('_', '-')}-by-memory.txt")


def test_memory_of_several_ranks_is_added_up_and_the_largest_has_the_curve() -> None:
    large, small = built_profiles.with_memory(), built_profiles.with_memory()
    (device,) = small.memory.devices
    device.largest_peak_bytes = device.peak.size_bytes = 1 << 30
    device.peak_at_ns, device.curve = 1, []
    (merged,) = merge_profiles([small, large]).memory.devices
    assert (merged.peak.size_bytes, merged.largest_peak_bytes) == (11 << 30, 10 << 30)
    assert (merged.peak_at_ns, len(merged.curve)) == (9_000_000, 2)


@pytest.mark.parametrize("width", [60, 160])
@pytest.mark.parametrize("name", PROFILES)
def test_no_table_is_wider_than_the_terminal(name: str, width: int) -> None:
    for by in TABLES:
        text = text_report(PROFILES[name](), by=by, width=width)
        table = text.split("\n\n")[1].splitlines()
        assert max(map(cell_len, table)) <= width, by


@pytest.mark.parametrize("limit", [1, 2, 0])
@pytest.mark.parametrize("sort", [None, "self", "idle", "wait", "cpu", "calls"])
def test_the_shares_of_all_rows_are_the_whole(sort: str | None, limit: int) -> None:
    text = text_report(built_profiles.training(), width=160, limit=limit, sort=sort)
    shares = [float(share) for share in re.findall(r"^ *([\d.]+)%", text, re.MULTILINE)]
    assert sum(shares) == pytest.approx(100, abs=0.3)


def test_shares_are_of_all_device_work_so_that_overlapping_streams_are_no_more_than_the_whole() -> None:
    profile = built_profiles.training()
    text = text_report(profile, by="module", width=160)
    share = float(re.findall(r"^ *([\d.]+)%", text, re.MULTILINE)[0])
    assert share == pytest.approx(100 * profile.modules[0].self_device_ns / profile.totals.device_ns, abs=0.05)


def test_without_colour_there_is_no_escape_and_with_it_the_text_is_the_same() -> None:
    for profile in (built_profiles.training(), built_profiles.hostile()):
        plain = text_report(profile, width=100)
        colored = text_report(profile, width=100, color=True)
        assert "\x1b" not in plain
        assert "\x1b[1;31m" in colored
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain


def test_an_unknown_key_names_those_there_are() -> None:
    with pytest.raises(OptionError, match=r"sort='size'.*by kernel.*device, mean, max, .*calls"):
        text_report(built_profiles.training(), by="kernel", sort="size")
    with pytest.raises(OptionError, match="line, function, operator"):
        text_report(built_profiles.training(), by="file")


def test_rows_stand_by_the_key_asked_for() -> None:
    rows = TABLES["line"].rows(built_profiles.training(), sort="wait")
    assert [row.wait_ns for row in rows] == sorted((row.wait_ns for row in rows), reverse=True)
    forward = TABLES["line"].rows(built_profiles.training(), sort="forward", limit=2)
    assert [row.line for row in forward] == [42, 17]
    places = TABLES["line"].rows(built_profiles.training(), sort="location")
    assert [row.line for row in places] == [9, 17, 42, 7, 5]


def test_source_text_comes_from_the_trace_and_never_from_a_changed_file(tmp_path) -> None:
    import hashlib

    from deepscope.records import SourceFile
    from deepscope.report.line_table import Sources

    file = tmp_path / "model.py"
    file.write_text("a = 1\n    b = 2\n")
    profile = built_profiles.training()
    line = built_profiles.line(str(file), 2, "f", 1)
    assert Sources(profile).text(line) == ""  # nothing recorded: what ran is not known
    profile.files[str(file)] = SourceFile(sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    assert Sources(profile).text(line) == "b = 2"
    file.write_text("b = 2\na = 1\n")
    assert Sources(profile).text(line) == ""


def test_several_ranks_show_how_far_they_lie_apart() -> None:
    first, second = built_profiles.training(), built_profiles.training()
    second.trace.ranks = [1]
    second.lines[0].self_device_ns = 10_000_000
    text = text_report(merge_profiles([first, second]), width=160)
    row = next(line for line in text.partition("\n\n")[2].splitlines() if "nets/model.py:42" in line)
    assert "10ms to 50ms" in row
    assert "ranks 0-1 of 2, summed up" in text
    assert "25ms a step" not in text  # two ranks side by side take no longer than one
    assert "50ms a step" in text


@pytest.mark.parametrize("path", each_trace())
def test_what_is_printed_by_default_and_what_n_leaves_of_json_is_bounded(path: Path) -> None:
    profile = profile_of(path)
    for by in TABLES:
        assert len(text_report(profile, by=by, width=120)) < 8_000, by
        assert len(json_report(profile, by=by, limit=5)) < 50_000, by
