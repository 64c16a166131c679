"""What Lightning does between the user's lines is no fault of the line that calls it: it stands by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Line, Profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

PL = "[pl][profile]"


def lightning_step(trace: TraceBuilder) -> TraceBuilder:
    """A step of 1,000 ns in `trainer.fit(…)`, line 9, with everything that a framework does in it."""
    trace.line("a.py", 9, "main", 0, 1_000)
    trace.annotation(f"{PL}[_TrainingEpochLoop].train_dataloader_next", 10, 90)  # loading is not its own
    trace.annotation(f"{PL}[Callback]EarlyStopping.on_train_batch_start", 110, 40)
    trace.annotation(f"{PL}run_training_batch", 160, 640)
    trace.annotation(f"{PL}[Strategy]SingleDevice.training_step", 170, 230)
    trace.line("a.py", 3, "training_step", 180, 200).op("aten::mm", 200, 100)
    trace.annotation(f"{PL}[Strategy]SingleDevice.backward", 410, 100).op("aten::mm", 420, 60)
    trace.annotation("Optimizer.step#Adam.step", 520, 200).op("aten::add_", 530, 50)
    trace.annotation(f"{PL}[Logger]update_train_step_metrics", 820, 100).op("aten::item", 830, 30)
    return trace.annotation(f"{PL}[Callback]Checkpoint{{'monitor': 'loss'}}.on_train_batch_end", 930, 50)


def profile_of(builder: TraceBuilder, folder: Path) -> Profile:
    return build_profile(read_trace(builder.write(folder / "t.pt.trace.json")))


def at(profile: Profile, line: int) -> Line:
    return next(row for row in profile.lines if row.line == line)


def parts(profile: Profile) -> dict[str, int]:
    assert all((row.framework, Path(row.file).name, row.line) == ("Lightning", "a.py", 9) for row in profile.framework)
    return {row.part: row.cost_ns for row in profile.framework}


def test_python_time_of_each_thing_that_the_framework_does_is_told(tmp_path: Path) -> None:
    profile = profile_of(lightning_step(TraceBuilder()), tmp_path)
    line = at(profile, 9)
    loops = 10 + 10 + 10 + 20 + 10 + 20  # between the spans of the line: 0-10, 100-110, 150-160, 800-820, …
    within_batch = 10 + 10 + 10 + 80  # of run_training_batch: 160-170, 400-410, 510-520, 720-800
    assert parts(profile) == {
        "loops": loops + within_batch + 10 + 20,  # and of training_step: 170-180, 380-400
        "logging": 100 - 30,
        "callback EarlyStopping": 40,
        "callback Checkpoint": 50,
    }
    assert line.framework_ns == sum(parts(profile).values())
    rest = 90 + (100 - 60) + (200 - 50)  # loading, waiting for autograd, the optimizer's own Python
    assert line.python_ns - line.framework_ns == rest
    assert at(profile, 3).framework_ns == 0


def test_each_cause_of_the_lines_cost_is_without_the_framework(tmp_path: Path) -> None:
    line = at(profile_of(lightning_step(TraceBuilder()), tmp_path), 9)
    assert line.why.host_ns == line.python_ns - line.framework_ns


@pytest.mark.parametrize("core_wait_ns", [200, 600, 900])
def test_it_waits_for_a_core_itself(tmp_path: Path, core_wait_ns: int) -> None:
    marked = lightning_step(TraceBuilder()).event("python_off_cpu", f"@do:{core_wait_ns}:{core_wait_ns}", 995, 1)
    alone, line = profile_of(lightning_step(TraceBuilder()), tmp_path), at(profile_of(marked, tmp_path), 9)
    assert line.core_wait_ns > 0
    assert line.framework_ns == at(alone, 9).framework_ns
    rest = line.python_ns - line.framework_ns
    assert line.why.host_ns + line.why.core_wait_ns + line.why.waiting_ns == rest
    assert line.why.core_wait_ns == pytest.approx(line.core_wait_ns * rest / line.python_ns, abs=1)


def test_with_a_device_it_is_idle_time_that_has_no_other_cause(tmp_path: Path) -> None:
    trace = TraceBuilder()
    lightning_step(trace).step(1, 0, 1_000)
    trace.kernel("gemm", 210, 250, 250)  # busy 250-500
    trace.kernel("adam", 540, 560, 100)  # busy 560-660
    profile = profile_of(trace, tmp_path)
    line = at(profile, 9)
    told = parts(profile)
    assert told["logging"] == 70
    assert told["callback EarlyStopping"] == 40
    assert told["callback Checkpoint"] == 50
    assert 0 < line.framework_ns == sum(told.values()) <= line.why.host_ns + line.framework_ns <= line.idle_ns
    costs = sum(row.cost_ns for row in profile.lines) + profile.no_line.cost_ns
    assert costs == profile.totals.device_ns + profile.totals.idle_ns


def test_a_line_of_the_users_that_calls_one_of_its_services_pays_for_it(tmp_path: Path) -> None:
    trace = TraceBuilder().line("a.py", 9, "main", 0, 1_000).annotation(f"{PL}run_training_batch", 10, 980)
    trace.line("a.py", 5, "on_train_batch_end", 100, 500).annotation(f"{PL}save_checkpoint", 110, 400)
    profile = profile_of(trace, tmp_path)
    assert at(profile, 5).framework_ns == 0
    assert at(profile, 5).python_ns == 500
    assert parts(profile) == {"loops": 500}


@pytest.mark.parametrize("name", ["run_training_batch", "[pl]run_training_batch", "my training"])
def test_names_of_others_are_no_frameworks(name: str, tmp_path: Path) -> None:
    trace = TraceBuilder().line("a.py", 9, "main", 0, 1_000).annotation(name, 10, 980)
    profile = profile_of(trace, tmp_path)
    assert not profile.framework
    assert at(profile, 9).framework_ns == 0


def test_a_step_has_its_own_part(tmp_path: Path) -> None:
    trace = TraceBuilder().line("a.py", 9, "main", 0, 2_000).step(1, 0, 1_000).step(2, 1_000, 1_000)
    for start in (0, 1_000):
        trace.annotation(f"{PL}run_training_batch", start + 10, 900)
    trace.annotation(f"{PL}[Callback]Slow.on_train_batch_end", 1_920, 70)
    path = trace.write(tmp_path / "t.pt.trace.json")
    first, second = (build_profile(read_trace(path), step=number) for number in (1, 2))
    assert parts(first) == {"loops": 1_000}
    assert parts(second) == {"loops": 930, "callback Slow": 70}
