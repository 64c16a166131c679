"""The comparison page: what `deepscope compare --format json` says of the same two runs, row by row."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from asking import Asking
from deepscope.cli.compare import compare as command_of
from deepscope.comparison import NUMBERS, TABLES
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, word
from deepscope.dashboard.pages.compare import _one_before
from recorded_traces import OWN_TRACES
from simulated_runs import noisy_times, simulated

LINES = {number: 2e6 / number for number in range(1, 9)}
TEXT = "".join(f"value_{number} = layer_{number}(batch)\n" for number in range(1, 13))

PROGRAM = {"program": "train.py", "arguments": "1f2e3d4c"}


def written(folder: Path, name: str, seed: int, lines: dict[int, float], minute: int, **header: Any) -> Path:
    """A run in a file of its own, recorded at some minute."""
    builder = simulated(noisy_times(lines, np.random.default_rng(seed)), text=TEXT)
    path = builder.write(folder / name)
    body = json.loads(path.read_text())
    body["deepscope"] |= {"recorded_at": f"2026-01-01T10:{minute:02d}:00+00:00", **header}
    path.write_text(json.dumps(body))
    os.utime(path, (1_700_000_000 + minute * 60,) * 2)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run before, and one after in which line 3 is slower and line 9 is new."""
    folder = tmp_path_factory.mktemp("runs")
    before = written(folder, "before.json", 1, LINES, 1, run_id="before", **PROGRAM)
    after = written(folder, "after.json", 2, {**LINES, 3: LINES[3] * 1.9, 9: 4e5}, 2, run_id="after", **PROGRAM)
    return before, after


@pytest.fixture(scope="module")
def ask(runs: tuple[Path, Path]) -> Iterator[Asking]:
    asking = Asking(runs[0].parent)
    yield asking
    asking.close()


def command(before: Path, after: Path, *more: str) -> Any:
    done = CliRunner().invoke(command_of, [str(before), str(after), "--format", "json", *more])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def agree(page: Any, told: Any) -> None:
    assert page["step"]["beforeNs"] == pytest.approx(told["step"]["before_ns"])
    assert page["step"]["afterNs"] == pytest.approx(told["step"]["after_ns"])
    assert [page["step"]["lowNs"], page["step"]["highNs"]] == pytest.approx(told["step"]["interval_ns"] or [None, None])
    changed = [row for row in told["rows"] if row["change_ns"]]
    keys = [column["key"] for column in page["rows"]["columns"]]
    assert len(page["rows"]["rows"]) == len(changed)
    assert page["beyondNoise"] == sum(not row["within_noise"] for row in changed)
    for shown, row in zip(page["rows"]["rows"], changed, strict=True):
        cells = dict(zip(keys, shown, strict=True))
        assert cells["change_ns"] == pytest.approx(row["change_ns"])
        assert cells.get("before_ns") == (None if row["status"] == "new" else pytest.approx(row["before_ns"]))
        assert cells.get("after_ns") == (None if row["status"] == "gone" else pytest.approx(row["after_ns"]))
        interval = [cells.get("low_ns"), cells.get("high_ns")]
        assert interval == (pytest.approx(row["interval_ns"]) if row["interval_ns"] else [None, None])
        assert (cells["verdict"] in {"within noise", "unknown"} or row["interval_ns"] is None) == row["within_noise"]
        if row.get("file"):
            assert cells["name"].endswith(f":{row['line']}")
            assert cells.get("source", "") == row["text"]
        elif "label" in row:
            assert cells["name"] == word(row["label"])


@pytest.mark.parametrize("by", TABLES)
def test_it_is_what_the_command_says_of_two_runs(ask: Asking, runs: tuple[Path, Path], by: str) -> None:
    agree(ask("compare", by=by), command(*runs, "--by", by))


@pytest.mark.parametrize("number", NUMBERS)
def test_it_is_so_for_either_number_of_lines(ask: Asking, runs: tuple[Path, Path], number: str) -> None:
    agree(ask("compare", number=number), command(*runs, "--metric", number))


def test_the_slower_line_and_the_new_one_are_beyond_noise(ask: Asking) -> None:
    page = ask("compare")
    table = page["rows"]
    keys = [column["key"] for column in table["columns"]]
    rows = [dict(zip(keys, row, strict=True)) for row in table["rows"][: page["beyondNoise"]]]
    assert {row["name"]: row["verdict"] for row in rows} == {"train.py:3": "slower", "train.py:9": "new"}
    assert page["hasIntervals"]


def test_without_a_baseline_the_run_before_is_taken(ask: Asking) -> None:
    after, before = ask("runs")["runs"]
    page = ask("compare")
    assert (page["before"]["run"], page["after"]["run"]) == (before["id"], after["id"])
    assert ask("compare", run=after["id"], baseline=before["id"]) == page


def test_another_program_is_no_baseline_by_itself(tmp_path: Path) -> None:
    written(tmp_path, "a.json", 1, LINES, 1, run_id="a", program="train.py", arguments="00000000")
    written(tmp_path, "b.json", 2, LINES, 2, run_id="b", **PROGRAM)
    asking = Asking(tmp_path)
    assert asking("compare")["before"] is None
    asking.close()


def test_the_other_way_round_every_change_has_the_other_sign(ask: Asking) -> None:
    after, before = ask("runs")["runs"]
    page, back = ask("compare"), ask("compare", run=before["id"], baseline=after["id"])
    assert back["step"]["changeNs"] == pytest.approx(-page["step"]["changeNs"])
    assert {row[0] for row in back["rows"]["rows"]} == {row[0] for row in page["rows"]["rows"]}


def test_the_oldest_run_has_none_before_it(ask: Asking) -> None:
    _, before = ask("runs")["runs"]
    page = ask("compare", run=before["id"])
    assert (page["before"], page["rows"]["rows"]) == (None, [])


def test_a_baseline_that_is_not_there_is_told(ask: Asking) -> None:
    assert ask.status("compare", baseline="gone")[0] == 400
    assert ask.status("compare", by="colour")[0] == 400


def test_windows_of_one_run_are_compared(tmp_path: Path) -> None:
    for window, factor in ((1, 1.0), (2, 2.0)):
        lines = {**LINES, 2: LINES[2] * factor}
        written(tmp_path, f"w{window}.json", window, lines, window, run_id="one", window=window)
    asking = Asking(tmp_path)
    try:
        (run,) = asking("runs")["runs"]
        assert run["windows"] == [1, 2]
        name = run["id"]
        assert asking("header")["run"] == name
        assert asking("header", run=f"{name}~1")["run"] == f"{name}~1"
        page = asking("compare", run=f"{name}~2")
        assert (page["before"]["run"], page["after"]["run"]) == (f"{name}~1", f"{name}~2")
        assert asking("compare", baseline=f"{name}~1")["rows"] == page["rows"]
        assert page["rows"]["rows"][0][0] == "train.py:2"
        agree(page, command(tmp_path / "w1.json", tmp_path / "w2.json"))
        assert asking.status("header", run=f"{name}~7")[0] == 400
        assert asking.status("header", run=f"{name}~x")[0] == 400
    finally:
        asking.close()


@pytest.mark.parametrize("by", ["operator", "kernel", "step"])
def test_it_is_so_for_recorded_traces(tmp_path: Path, by: str) -> None:
    for name in ("grafted-device", "grafted-ranks-0"):
        shutil.copy(OWN_TRACES / f"{name}.json.gz", tmp_path)
    asking = Asking(tmp_path)
    try:
        names = {run["title"]: run["id"] for run in asking("runs")["runs"]}
        device, ranks = (names[program] for program in ("train.py", "ranks.py"))
        page = asking("compare", run=ranks, baseline=device, by=by)
        agree(page, command(*sorted(tmp_path.iterdir()), "--by", by))
    finally:
        asking.close()


def test_a_run_that_went_while_it_was_asked_about_has_no_run_before(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library([str(runs[0].parent)])
    gone = library.run(Choice())
    monkeypatch.setattr(library, "run", lambda _: gone)
    monkeypatch.setattr(library, "runs", list)
    assert _one_before(library, Choice()) == ""
    library.close()
