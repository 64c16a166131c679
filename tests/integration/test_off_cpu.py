"""What the recorder says of waiting holds against a program that knows how long it waits, and where."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import deepscope
from deepscope.records import Line, Profile

TARGETS = Path(__file__).parents[1] / "targets"
MS = 1_000_000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a fine CPU clock of the thread")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    sys.path.insert(0, str(TARGETS))
    try:
        waiting = importlib.import_module("waiting")
    finally:
        sys.path.remove(str(TARGETS))
    with deepscope.profile(tmp_path_factory.mktemp("runs"), root=TARGETS) as prof:
        waiting.run()
    assert prof.profile is not None
    return prof.profile


def marked(profile: Profile, mark: str) -> Line:
    (line,) = [line for line in profile.lines if (line.text or "").endswith(f"# {mark}")]
    return line


@pytest.mark.parametrize(("mark", "least_ms"), [("sleep", 50), ("lock", 50), ("raises", 20), ("generator", 40)])
def test_a_line_that_waits_is_blocked(profile: Profile, mark: str, least_ms: int) -> None:
    line = marked(profile, mark)
    # The thread does some work to fall asleep and to wake up again.
    assert line.blocked_ns >= 0.97 * least_ms * MS
    assert line.python_cpu_ns < 10 * MS
    assert line.loader_wait_ns == 0


def test_a_line_that_computes_is_on_the_cpu_however_busy_the_machine(profile: Profile) -> None:
    line = marked(profile, "busy")
    assert line.python_cpu_ns > 30 * MS
    assert line.blocked_ns < line.python_cpu_ns / 4


def test_a_loop_over_a_loader_with_workers_waits_for_them(profile: Profile) -> None:
    line = marked(profile, "loader")
    assert line.loader_wait_ns > 60 * MS
    assert line.loader_wait_ns > 2 * line.blocked_ns


def test_the_parts_sum_to_pythons_own_time(profile: Profile) -> None:
    for line in profile.lines:
        assert line.python_cpu_ns + line.loader_wait_ns + line.blocked_ns == line.python_ns
