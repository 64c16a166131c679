"""Stragglers planted in DDP on gloo, recorded for real: the rank, its line, how often, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.store.load import load_profile
from deepscope.store.ranks import read_ranks

PROGRAM = Path(__file__).parents[1] / "targets" / "stragglers.py"
PLANTS = {
    "data": ("data", [2]),
    "workers": ("data", [2]),
    "work": ("work", [2]),
    "batch": ("work", [2]),
    "host": ("host", [2]),
    "some": ("host", [2]),
    "once": ("host", [2]),
    "two": ("host", [1, 3]),
}
"""Each plant, its cause and the late ranks."""

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(sys.platform == "win32", reason="torchrun needs a POSIX system")]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All plants, recorded one after the other by four ranks."""
    folder = tmp_path_factory.mktemp("stragglers")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", PROGRAM, folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*map(str, command), *PLANTS], check=True, capture_output=True, timeout=240, env=environment)
    return folder


def report_of(folder: Path, plant: str) -> RanksReport:
    return side_by_side(read_ranks(folder / plant).summaries)


def line_of(plant: str) -> int:
    """The line whose comment names the plant."""
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    (number,) = (
        number
        for number, line in enumerate(lines, 1)
        if plant in line.partition("# late:")[2].replace(",", " ").split()
    )
    return number


@pytest.mark.parametrize("plant", PLANTS)
def test_the_planted_rank_is_named_with_its_cause_and_its_line(recorded: Path, plant: str) -> None:
    cause, ranks = PLANTS[plant]
    found = report_of(recorded, plant).stragglers[: len(ranks)]
    assert sorted(one.rank for one in found) == ranks
    for one in found:
        assert one.cause == cause
        assert Path(one.file).name == PROGRAM.name
        # Loops without a call within are known by their function alone, which begins a few lines above.
        assert line_of(plant) - 3 <= one.line <= line_of(plant)
        assert one.line_ns > 0
        assert f"stragglers.py:{one.line}" in one.message


def test_a_rank_that_is_late_in_some_steps_or_once_is_told_from_one_that_always_is(recorded: Path) -> None:
    late = {plant: report_of(recorded, plant).stragglers[0] for plant in ("data", "some", "once")}
    assert {one.steps for one in late.values()} == {6}
    # A busy machine may hide a step, or make one late.
    assert late["data"].late_steps >= 5
    assert 2 <= late["some"].late_steps <= 3
    assert late["once"].late_steps == 1
    assert "in a single one of 6 steps" in late["once"].message


def test_a_sleep_is_as_long_as_it_was(recorded: Path) -> None:
    (one, *_) = report_of(recorded, "data").stragglers
    assert 55_000_000 < one.line_ns < 90_000_000
    assert one.held_ns > 2 * one.line_ns


def test_the_finding_stands_at_the_line_in_the_merged_profile(recorded: Path) -> None:
    merged = load_profile(recorded / "data")
    (found,) = [one for one in merged.findings if one.code == "DS032" and one.line == line_of("data")]
    assert found.evidence["straggling_rank"] == "2"
    assert found.evidence["cause"] == "data"
    assert 0 < found.saving_ns <= merged.totals.wall_ns
    assert found.severity == "warning"
    alone = load_profile(recorded / "data", rank=2)
    assert "DS032" not in {one.code for one in alone.findings}
