"""A comparison in words: text that fits, JSON as documented, Markdown that obeys nobody."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import built_profiles
from deepscope.comparison import TABLES, compare
from deepscope.comparison.compare import judge
from deepscope.records import Profile
from deepscope.report.comparison_report import comparison_json, comparison_markdown, comparison_object, comparison_text
from simulated_runs import noisy_times, profile_of_run

MS = 1_000_000
TEXT = "".join(f"value_{number} = layer_{number}(batch)\n" for number in range(1, 9))


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
    profile.steps = []
    return profile


def built() -> Profile:
    profile = built_profiles.training()
    profile.steps = []
    return profile


@pytest.fixture
def changed(tmp_path: Path):
    """Two runs with known times: line 2 became three times as slow, line 9 is new."""
    lines = {number: 2e6 / number for number in range(1, 9)}
    rng = np.random.default_rng(1)
    return compare(
        [profile_of_run(tmp_path, noisy_times(lines, rng), text=TEXT)],
        [
            profile_of_run(
                tmp_path, noisy_times({**lines, 2: 3e6, 9: 1e6}, rng), text=TEXT + "fresh = [x](javascript:y)|`z`\n"
            )
        ],
    )


def test_lines_are_matched_by_text_wherever_they_moved() -> None:
    rows = {row.name: row for row in compare([built()], [edited()], number="self").rows}
    forward = rows["Net.forward"]
    assert forward.after is not None
    assert (forward.after.path, forward.after.record.line) == ("nets/model.py", 52)
    assert (forward.before_ns, forward.after_ns, forward.status) == (25 * MS, 12.5 * MS, "moved")
    assert rows["Net.embed"].change_ns == 15 * MS - 10 * MS
    assert (rows["数える"].before_ns, rows["数える"].status) == (4 * MS, "gone")
    assert (rows["fresh"].after_ns, rows["fresh"].status) == (MS, "new")
    assert rows["(no user line)"].change_ns == -2.5 * MS


def test_a_run_compared_with_itself_has_not_changed() -> None:
    comparison = compare([built()], [built()])
    assert "no line has changed" in comparison_text(comparison)
    assert all(row.change_ns == 0 for row in comparison.rows)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_table_fits_and_shows_what_is_no_noise_first(changed, width: int) -> None:
    text = comparison_text(changed, width=width)
    if width >= 80:
        assert max(map(len, text.splitlines()[1:])) <= max(width, 90)  # a path is not cut
    table = [line for line in text.splitlines() if re.match(r"\s*[-+]?[\d.]+(ms|µs|ns)\s", line)]
    assert "slower" in table[0]
    assert "new" in table[1]
    assert all("within noise" in line for line in table[2:])
    assert "beyond noise" in " ".join(text.split())


def test_no_spread_is_said() -> None:
    text = " ".join(comparison_text(compare([built()], [edited()]), width=100).split())
    assert "no interval can be given and no change is called significant" in text
    assert "unknown" in text
    assert "within noise" not in text


def test_the_reasons_of_a_failure_are_printed(changed) -> None:
    verdict = judge(changed, 5)
    text = comparison_text(changed, verdict=verdict, width=200)
    assert "failed  a step is slower by" in text
    assert "train.py:2 is slower by" in text
    assert "**failed**: train.py:2 is slower by" in comparison_markdown(changed, verdict=verdict)


@pytest.mark.parametrize("by", TABLES)
def test_hostile_names_reach_no_terminal_and_no_browser(by) -> None:
    comparison = compare([built_profiles.hostile()], [built_profiles.hostile(), built_profiles.hostile()], by=by)
    for text in (comparison_text(comparison), comparison_markdown(comparison), comparison_json(comparison)):
        assert "\x1b" not in text
        assert "\x07" not in text
        text.encode("utf-8")
    markdown = comparison_markdown(comparison)
    assert "<script" not in re.sub(r"`[^`]*`", "", markdown)


def test_a_hostile_place_is_harmless_as_a_reason(tmp_path: Path) -> None:
    file = "/job/\x1b[31m\u202e`<img src=x>.py"
    runs = [
        profile_of_run(tmp_path, {line: [ns, ns + 1, ns] for line in range(1, 7)}, text=TEXT, file=file)
        for ns in (10_000, 90_000)
    ]
    comparison = compare(*([run] for run in runs))
    verdict = judge(comparison, 5)
    assert any("\x1b" in reason for reason in verdict.reasons)
    for words in (comparison_text(comparison, verdict=verdict), comparison_markdown(comparison, verdict=verdict)):
        assert "\x1b" not in words
        assert "\u202e" not in words
    assert "<img" not in comparison_markdown(comparison, verdict=verdict).replace("\\<img", "").replace("`<img", "")


def test_markdown_is_a_table_whose_code_is_code(changed) -> None:
    text = comparison_markdown(changed)
    assert text.startswith("### DeepScope: ")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    head, _, slower, new = rows[:4]
    assert head == "| line | change | interval | before | after |  | source |"
    assert slower.startswith("| `train.py:2` | +2")
    assert re.search(r"(?<!\\)\]\(", new) is None
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:4]} == {8}
    assert "<details><summary>" in text
    assert "within noise</summary>" in text


def test_the_object_is_as_documented(changed) -> None:
    found = json.loads(comparison_json(changed, verdict=judge(changed, 5)))
    row = found["rows"][0]
    assert (row["file"], row["line"], row["status"], row["within_noise"]) == ("train.py", 2, "same", False)
    assert row["interval_ns"][0] <= row["after_ns"] - row["before_ns"] <= row["interval_ns"][1]
    assert row["before_ns"] == pytest.approx(1e6, rel=0.2)
    for one in found["rows"]:
        assert one["within_noise"] == (one["interval_ns"][0] <= 0 <= one["interval_ns"][1])
        assert one["change_ns"] == one["after_ns"] - one["before_ns"]
        assert set(one) == {
            "file", "line", "function", "text", "before_ns", "after_ns", "change_ns", "interval_ns", "within_noise",
            "status", "before_file", "before_line", "edited",
        }  # fmt: skip
    (new,) = (one for one in found["rows"] if one["status"] == "new")
    assert (new["line"], new["before_ns"], new["before_line"]) == (9, 0, None)
    assert found["confidence"] == 0.95
    assert found["fail_over"]["percent"] == 5
    assert found["step"]["within_noise"] is False
    assert [one["steps"] for one in (*found["before"], *found["after"])] == [5, 5]


def test_the_object_holds_every_row_or_those_asked_for(changed) -> None:
    assert len(comparison_object(changed)["rows"]) == len(changed.rows)
    assert len(comparison_object(changed, limit=2)["rows"]) == 2
    kernels = comparison_object(compare(changed.before, changed.after, by="kernel"))
    assert kernels["rows"][0]["name"] == "kernel_2"
    assert "lines" not in kernels


def test_one_step_has_null_for_an_interval() -> None:
    found = comparison_object(compare([built()], [edited()]))
    assert {(one["interval_ns"], one["within_noise"]) for one in found["rows"]} == {(None, True)}


def test_strangers_are_told_in_the_sentence_of_the_comparison(tmp_path: Path) -> None:
    def run(text: str | None = TEXT, program: str = "train.py", root: str = "/job") -> Profile:
        times = {number: [1 * MS, 1 * MS] for number in range(1, 9)}
        return profile_of_run(tmp_path, times, text=text, program=program, root=root)

    def said(before: Profile, after: Profile) -> str:
        found = compare([before], [after])
        sentence = comparison_markdown(found).splitlines()[0].removeprefix("### DeepScope: ")
        assert f"step    {sentence}\n" in comparison_text(found, width=300)
        return sentence.rpartition("; ")[2] if "; " in sentence else ""

    other = TEXT.splitlines()[0] + "\n" + "".join(f"result_{number} = serve({number})\n" for number in range(2, 9))
    edited = TEXT.replace("layer_3(", "layer_33(")
    assert said(run(), run(edited)) == said(run(), run(edited, root="/elsewhere", program="again.py")) == ""
    assert said(run(), run(other)) == "these runs share 12.5% of their lines"
    words = "these runs share 12.5% of their lines: train.py before, serve.py after"
    assert said(run(), run(other, program="serve.py", root="/elsewhere")) == words
    assert said(run(), run(other.replace("layer_1(", "x("))) == "these runs share none of their lines"
    words = "these runs share 12.5% of their lines: /job before, /elsewhere after"
    assert said(run(), run(other, root="/elsewhere")) == words
    assert said(run(), run(None)) == "whether these runs share code is not known"
    assert comparison_object(compare([run()], [run(None)]))["shared_lines"] is None
    assert comparison_object(compare([run()], [run(other)]))["shared_lines"] == 1 / 8
