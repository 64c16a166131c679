"""Beside a baseline the editor says what has changed, and nothing where it may be noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deepscope.records import Profile
from deepscope.remap import LineMap
from deepscope_lsp.engine import baseline as baseline_module
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.hot_lines import hot_lines
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.project import Project, Remembered
from deepscope_lsp.engine.status import status_of
from deepscope_lsp.engine.wording.hover import HoverContext, function_hover, line_hover
from simulated_runs import FILE, noisy_times, profile_of_run
from trace_builder import TraceBuilder

TEXT = "".join(f"value_{number} = layer_{number}(batch)\n" for number in range(1, 13))
LINES = {number: 2e6 / number for number in range(1, 13)}


@pytest.fixture
def run(tmp_path: Path):
    def make(seed: int, lines: dict[int, float] = LINES, text: str = TEXT, **noise: float) -> Profile:
        functions = dict.fromkeys(range(1, 7), "first") | dict.fromkeys(range(7, 13), "second")
        times = noisy_times(lines, np.random.default_rng(seed), spread=0.1, **noise)  # type: ignore[arg-type]
        return profile_of_run(tmp_path, times, text=text, functions=functions)

    return make


def nowhere(_file: str, _line: int = 0) -> None:
    return None


def hover_of(baseline: Baseline, now: ProfileIndex, line: int) -> str:
    return line_hover(now.files[FILE].lines[line], HoverContext(now, nowhere, baseline=baseline))


def test_two_runs_of_the_same_code_show_no_change(run) -> None:
    now = ProfileIndex(run(1))
    baseline = Baseline(ProfileIndex(run(2)), now)
    answer = hot_lines(now, nowhere, limit=50, baseline=baseline)
    assert [line.change_words for line in answer.lines] == [""] * 12
    assert all(line.baseline_words.endswith(", within noise") for line in answer.lines)
    assert answer.vanished == []
    assert "| cost | " in hover_of(baseline, now, 1)
    assert "| within noise |" in hover_of(baseline, now, 1)
    assert "%) |" not in hover_of(baseline, now, 1)
    assert "| within noise |" in function_hover(now.profile.functions[0], HoverContext(now, nowhere, baseline=baseline))
    project = Project("", Remembered(""))
    project.show(now.profile, [], run(2))
    assert status_of(project, "ready").remarks[0].words.startswith("within noise (±")


def test_the_line_that_became_slower_shows_its_change_and_no_other_does(run) -> None:
    now = ProfileIndex(run(1, {**LINES, 3: LINES[3] * 2}))
    baseline = Baseline(ProfileIndex(run(2)), now)
    changed = {line.line: line.change_words for line in hot_lines(now, nowhere, limit=50, baseline=baseline).lines}
    assert changed.pop(3).startswith("+")
    assert set(changed.values()) == {""}
    assert "(+" in hover_of(baseline, now, 3)
    assert baseline.noise(FILE, 3) == "beyond"
    functions = {one.function: one for one in now.profile.functions}
    assert baseline.function_noise(functions["first"]) == "beyond"
    assert baseline.function_noise(functions["second"]) == "within"


def test_the_texts_of_vanished_lines_are_compared_once(run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class CountedMap(LineMap):
        def __init__(self, *texts: list[str]) -> None:
            made.append(texts)
            super().__init__(*texts)

    monkeypatch.setattr(baseline_module, "LineMap", CountedMap)
    left = {line: ns for line, ns in LINES.items() if line > 4}
    now = ProfileIndex(run(1, left, "# a head\n" * 4 + TEXT.split("\n", 4)[-1]))
    baseline = Baseline(ProfileIndex(run(2)), now)
    for _ in range(2):
        vanished = hot_lines(now, nowhere, limit=50, baseline=baseline).vanished
    assert len(vanished) >= 3
    assert len(made) == 1


def test_a_line_is_compared_with_what_it_was_before_its_edit(run) -> None:
    text = "# a head\n" + TEXT.replace("layer_3(batch)", "layer_3(batch.half())")
    now = ProfileIndex(run(1, {line + 1: ns * (0.3 if line == 3 else 1) for line, ns in LINES.items()}, text))
    baseline = Baseline(ProfileIndex(run(2)), now)
    changed = {line.line: line.change_words for line in hot_lines(now, nowhere, limit=50, baseline=baseline).lines}
    assert changed.pop(4).startswith("-")
    assert set(changed.values()) == {""}
    assert baseline.vanished() == []
    assert baseline.cost_per_step_ns(FILE, 4) == pytest.approx(LINES[3], rel=0.2)


def test_what_is_gone_is_listed_unless_it_may_be_noise(run) -> None:
    now = ProfileIndex(
        run(1, {line: ns for line, ns in LINES.items() if line != 2}, TEXT.replace("value_2 = layer_2(batch)", ""))
    )
    baseline = Baseline(ProfileIndex(run(2)), now)
    assert [line.line for line in baseline.vanished()] == [2]


def test_one_step_shows_changes_and_says_that_they_may_be_chance(run) -> None:
    now = ProfileIndex(run(1, steps=1))
    baseline = Baseline(ProfileIndex(run(2, steps=1)), now)
    answer = hot_lines(now, nowhere, limit=50, baseline=baseline)
    assert any(line.change_words for line in answer.lines)
    assert all(line.baseline_words.endswith(", of unknown noise") for line in answer.lines)
    assert "changes may be chance" in hover_of(baseline, now, 1)


def test_a_baseline_of_another_kind_of_device_is_shown_without_a_judgement(run, tmp_path: Path) -> None:
    from deepscope.analysis.build import build_profile
    from deepscope.trace.read import read_trace

    cpu = TraceBuilder().step(1, 0, 900).line(FILE, 1, "first", 0, 500).op("aten::mm", 10, 400)
    now = ProfileIndex(run(1))
    baseline = Baseline(ProfileIndex(build_profile(read_trace(cpu.write(tmp_path / "cpu.json")))), now)
    assert baseline.noise(FILE, 1) == "unknown"
    assert "Baseline" in hover_of(baseline, now, 1)
    assert hot_lines(now, nowhere, limit=5, baseline=baseline).lines


def test_a_baseline_chosen_by_hand_that_is_a_stranger_is_told(run) -> None:
    stranger = run(2, text=TEXT.splitlines()[0] + "\n" + "".join(f"x_{number} = serve()\n" for number in range(2, 13)))
    project = Project("", Remembered(""))
    project.show(run(1), [])
    project.compare_with(stranger)
    (remark,) = (one for one in status_of(project, "ready").remarks if "shared" in one.words)
    assert (remark.words, remark.detail) == ("8.3 % of lines shared", "These runs share 8.3 % of their lines.")
    assert project.baseline is not None
    assert project.index is not None
    assert "; these runs share 8.3 % of their lines" in hover_of(project.baseline, project.index, 1)
    project.compare_with(run(2))
    assert not any("shared" in one.words for one in status_of(project, "ready").remarks)
