"""Idle time that recording added to a device's, beside a simulation of the same steps without recording."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Profile
from deepscope.report.text_report import text_report
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

FILE = "/home/me/model.py"
US = 1_000
TINY, PAUSE, LARGE, SYNC = 4, 5, 6, 7
"""Lines: many tiny kernels; Python alone; kernels that take longer than to launch; a wait for all of them."""
HOOK_NS, OPERATOR_NS = 30 * US, 15 * US
"""What an entry of a line and an operator take longer while they are recorded."""


@dataclass
class Simulated:
    """Steps of one thread and one device, either recorded or plain."""

    recorded: bool
    pauses: tuple[int, ...] = (2000 * US,) * 3
    kernel_ns: int = 300 * US
    """Of the large ones."""
    large: int = 6
    """How many of them are launched in a step."""
    tiny: int = 40
    waits: bool = True
    """Whether each step waits for the device."""
    header: dict[str, Any] = field(default_factory=dict)
    idle_ns: dict[int, int] = field(default_factory=dict)
    """What a line let the device idle, by the simulation's own book."""
    lengths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = self.free = 0
        self.builder = TraceBuilder(deepscope=self.header)
        for number, pause in enumerate(self.pauses):
            begin = self.now
            self._line(TINY, self.tiny, 5 * US)
            self._line(PAUSE, 0, 0, pause)
            self._line(LARGE, self.large, self.kernel_ns)
            if self.waits:
                self._line(SYNC, 0, 0, max(self.free - self.now, 0) + 20 * US)
            self.lengths.append(self.now - begin)
            self.builder.step(number, begin, self.now - begin)

    def _line(self, line: int, operators: int, kernel_ns: int, python_ns: int = 10 * US) -> None:
        begin = self.now
        self.now += python_ns + HOOK_NS * self.recorded
        if line == SYNC:
            self.builder.runtime("cudaStreamSynchronize", begin + 1, self.now - begin - 2)
        for _ in range(operators):
            at, self.now = self.now, self.now + 20 * US + OPERATOR_NS * self.recorded
            self.builder.op("aten::mul", at, self.now - at)
            start = max(self.free, self.now - 2 * US)
            self.builder.kernel("mul", self.now - 5 * US, start, kernel_ns, launch_duration=4 * US)
            self._note_idle(line, begin, start)
            self.free = start + kernel_ns
        self._note_idle(line, begin, self.now)
        self.builder.line(FILE, line, "forward", begin, self.now - begin)

    def _note_idle(self, line: int, begin: int, until: int) -> None:
        """The device was free from the end of its last work, or of the last note of it, on."""
        since = max(self.free, begin)
        if until > since:
            self.idle_ns[line] = self.idle_ns.get(line, 0) + until - since
            self.free = until


def profile(of: Simulated, folder: Path) -> Profile:
    found = build_profile(read_trace(of.builder.write(folder / "built.json")))
    assert sum(line.idle_ns for line in found.lines) + found.no_line.idle_ns == found.totals.idle_ns
    assert found.totals.busy_ns + found.totals.idle_ns == found.totals.wall_ns
    assert [one.busy_ns + one.idle_ns for one in found.steps] == [one.duration_ns for one in found.steps]
    assert sum(one.duration_ns for one in found.steps) == found.totals.wall_ns
    assert sum(one.wall_ns for one in found.phases) == found.totals.wall_ns
    return found


def header(plain: Simulated | None, *, cost_ns: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {"lines": {"backend": "monitoring", "cost_ns": cost_ns}}
    if plain is not None:
        quartiles = [int(one) for one in statistics.quantiles(plain.lengths, method="inclusive")]
        times = {"mean_ns": quartiles[1], "quartiles_ns": quartiles}
        found["plain_steps"] = {"steps": 20, "wall": times, "cpu": times}
    return found


def idle_of(found: Profile) -> dict[int, int]:
    return {line.line: line.idle_ns for line in found.lines}


@pytest.mark.parametrize(("cost_ns", "error"), [(HOOK_NS, 0.08), (0, 0.15)])
def test_idle_time_is_that_of_steps_that_nobody_records(tmp_path: Path, cost_ns: int, error: float):
    plain = Simulated(recorded=False)
    found = profile(Simulated(recorded=True, header=header(plain, cost_ns=cost_ns)), tmp_path)
    assert found.totals.wall_ns == pytest.approx(sum(plain.lengths), rel=0.01)
    assert found.totals.busy_ns == 3 * (40 * 5 + 6 * 300) * US
    shown = idle_of(found)
    assert shown[TINY] == pytest.approx(plain.idle_ns[TINY], rel=error)
    assert shown[PAUSE] == pytest.approx(plain.idle_ns[PAUSE], rel=0.03)


def test_recorded_and_plain_steps_of_one_length_are_left_as_they_are(tmp_path: Path):
    plain = Simulated(recorded=False)
    same = Simulated(recorded=False, header=header(plain, cost_ns=HOOK_NS))
    assert idle_of(profile(same, tmp_path)) == {line: plain.idle_ns.get(line, 0) for line in (TINY, PAUSE, LARGE, SYNC)}


def test_without_plain_steps_the_known_cost_alone_is_taken_off(tmp_path: Path):
    bare, known = (profile(Simulated(recorded=True, header=header(None, cost_ns=ns)), tmp_path) for ns in (0, HOOK_NS))
    assert bare.totals.wall_ns == sum(Simulated(recorded=True).lengths)
    # In each step three lines are entered while the device has nothing to do, one of them 3 µs before it has not.
    assert bare.totals.wall_ns - known.totals.wall_ns == pytest.approx(3 * (3 * HOOK_NS - 3 * US), abs=US)


def test_a_longer_pause_stays_the_longer_step(tmp_path: Path):
    pauses = (2000 * US,) * 4 + (9000 * US,)
    plain = Simulated(recorded=False, pauses=pauses)
    found = profile(Simulated(recorded=True, pauses=pauses, header=header(plain, cost_ns=HOOK_NS)), tmp_path)
    assert idle_of(found)[PAUSE] == pytest.approx(plain.idle_ns[PAUSE], rel=0.03)
    shown = [one.duration_ns for one in found.steps]
    assert shown == pytest.approx(plain.lengths, rel=0.05)


def test_work_that_keeps_the_device_busy_loses_nothing(tmp_path: Path):
    plain = Simulated(recorded=False, pauses=(0, 0, 0), kernel_ns=5000 * US)
    found = profile(Simulated(recorded=True, pauses=(0, 0, 0), kernel_ns=5000 * US, header=header(plain)), tmp_path)
    assert found.totals.wall_ns == pytest.approx(sum(plain.lengths), rel=0.01)
    assert found.totals.busy_ns == 3 * (40 * 5 + 6 * 5000) * US


@pytest.mark.parametrize(("large", "kernel_us"), [(6, 300), (30, 60), (40, 45), (6, 5000)])
def test_a_wait_costs_what_it_costs_where_nobody_records(tmp_path: Path, large: int, kernel_us: int):
    """While it is recorded, the CPU comes later to it, and waits less."""
    steps = {"pauses": (500 * US,) * 5, "tiny": 0, "large": large, "kernel_ns": kernel_us * US}
    plain, ahead = Simulated(recorded=False, **steps), Simulated(recorded=False, waits=False, **steps)
    recorded = Simulated(recorded=True, header=header(plain, cost_ns=HOOK_NS), **steps)
    (found,) = [one for one in profile(recorded, tmp_path).findings if one.code == "DS001"]
    assert found.line == SYNC
    # The last step has none behind it that could begin earlier.
    assert found.saving_ns == pytest.approx(sum(plain.lengths) - max(ahead.now, ahead.free), rel=0.1)


@pytest.mark.parametrize(("kernel_ns", "is_behind"), [(5000 * US, True), (1200 * US, False)])
def test_steps_that_nothing_waits_for_are_said_to_take_as_long_as_the_device(tmp_path: Path, kernel_ns, is_behind):
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, TINY, "forward", at, 1000 * US).op("aten::mm", at, 900 * US)
        builder.kernel("mm", at + 10 * US, 20 * US + number * kernel_ns, kernel_ns)
    found = build_profile(read_trace(builder.write(tmp_path / "built.json")))
    assert found.totals.behind_ns == 3 * kernel_ns + 20 * US - 3000 * US
    words = " ".join(text_report(found).split())
    assert ("12.0ms behind as the last step ended" in words) == is_behind
    assert ("it takes about 5.01ms a step" in words) == is_behind
    assert ("1ms a step on the CPU, about 5.01ms on the device (" in words) == is_behind


@pytest.mark.parametrize("entries", [1, 300])
def test_without_a_device_a_step_is_as_long_as_what_its_lines_cost(tmp_path: Path, entries: int) -> None:
    """Of each entry 3 µs were the hooks'; what runs in operators takes as long as before."""
    builder, lengths = TraceBuilder(deepscope={"lines": {"cost_ns": 3 * US, "entries": 4 * entries + 8}}), []
    for number in range(4):
        begin = now = number * 10_000 * US
        builder.annotation("[pl][profile][LightningModule]Net.training_step", begin, entries * 10 * US)
        for entry in range(entries):
            builder.line(FILE, TINY + entry % 2, "forward", now, 10 * US)
            builder.op("aten::add", now + 5 * US, 2 * US)
            now += 10 * US
        builder.line(FILE, SYNC, "step", now, 1_000 * US).op("aten::mm", now + 100 * US, 700 * US)
        lengths.append(entries * 7 * US + 997 * US)
        builder.step(number, begin, now + 1_000 * US - begin)
    path = builder.write(tmp_path / "run.pt.trace.json")
    profile = build_profile(read_trace(path))
    assert [step.duration_ns for step in profile.steps] == pytest.approx(lengths, abs=entries)
    assert profile.totals.wall_ns == sum(step.duration_ns for step in profile.steps)
    assert profile.totals.wall_ns == pytest.approx(sum(line.cost_ns for line in profile.lines), abs=4 * entries)
    assert profile.totals.added_ns == pytest.approx((entries + 1) * 4 * 3 * US, abs=4 * entries)
    assert sum(phase.wall_ns for phase in profile.phases) == profile.totals.wall_ns
    for step in profile.steps:
        assert build_profile(read_trace(path), step=step.number).totals.wall_ns == step.duration_ns
    forward = next(phase.wall_ns for phase in profile.phases if phase.name == "forward")
    assert forward == pytest.approx(4 * entries * 7 * US, abs=4 * entries)
