"""The end of a window: what the recorder and torch do then is no part of a step, a line, a phase or a span."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch

import deepscope
from deepscope import load_profile
from deepscope.capture import torch_compat
from deepscope.capture.lines.recorder import LineRecorder
from deepscope.capture.window_memory import MemorySurveys
from deepscope.capture.workers import WorkerClocks
from deepscope.lightning import DeepProfiler
from deepscope.trace.read import read_trace
from lightning_runs import QUIET, QUIET_MARKS, loader, make_model
from recorded import TESTS, Net, PlainSGD, load, run_python, train_step
from warm_python import run_warm

pytestmark = QUIET_MARKS
TEN_LINES = """\
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
optimizer = torch.optim.Adam(model.parameters())
for i in range(8):
    x = torch.randn(32, 64)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SLOW_S = 0.1
"""Each part of the closing is made to take so long."""

Pause = tuple[int, int]
"""When a part of the closing was made to wait: nanoseconds since the epoch by the host's clock."""


def cpu_spans(trace: Path) -> list[dict[str, Any]]:
    kinds = ("cpu_op", "user_annotation", "python_line", "python_module", "python_function", "cuda_runtime")
    return [event for event in load(trace, exact=True)["traceEvents"] if event.get("cat") in kinds]


def beyond_the_last_step(trace: Path) -> list[tuple[str, Decimal]]:
    """Spans of the CPU that end later than the last step, with by how much, in µs."""
    spans = cpu_spans(trace)
    last = max(one["ts"] + one["dur"] for one in spans if one["name"].startswith("ProfilerStep#"))
    ends = ((one["name"], one["ts"] + one["dur"] - last) for one in spans)
    return [(name, late_us) for name, late_us in ends if late_us > 2]  # torch before 2.3 writes whole microseconds


def recorded_ns(trace: Path) -> tuple[int, int]:
    """From the beginning of the first span of the CPU to the end of the last, by the host's clock."""
    spans, base_ns = cpu_spans(trace), read_trace(trace).unix_base_ns
    begin, end = min(one["ts"] for one in spans), max(one["ts"] + one["dur"] for one in spans)
    return base_ns + int(1000 * begin), base_ns + int(1000 * end)


def pauses_within(trace: Path, pauses: list[Pause]) -> list[Pause]:
    """Pauses of which half or more lies where spans are recorded; a clock that is some ms off moves none there."""
    begin, end = recorded_ns(trace)
    return [(since, until) for since, until in pauses if 2 * (min(end, until) - max(begin, since)) >= until - since]


def slowed(method: Callable[..., Any], pauses: list[Pause]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        since = time.time_ns()
        time.sleep(SLOW_S)
        pauses.append((since, time.time_ns()))
        return method(*args, **kwargs)

    return call


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[Pause]:
    """Filled while the parts of a closing, made slow, wait."""
    found: list[Pause] = []
    for kind, name in ((LineRecorder, "stop"), (WorkerClocks, "end_window"), (MemorySurveys, "end")):
        monkeypatch.setattr(kind, name, slowed(getattr(kind, name), found))
    before_torchs_stop = slowed(torch_compat.thread_is_taken, found)
    monkeypatch.setattr(torch_compat, "thread_is_taken", before_torchs_stop)
    return found


def test_with_deepscope_run_the_last_step_of_the_optimizer_is_like_the_others(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(TEN_LINES)
    done = run_warm(module="deepscope", arguments=("run", "-q", "train.py"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (trace,) = (tmp_path / "deepscope_logs").glob("*.gz")
    assert beyond_the_last_step(trace) == []
    profile = load_profile(trace, cache=False)
    assert len([one for one in cpu_spans(trace) if one["name"].startswith("Optimizer.step#Adam")]) == 3
    (phase,) = (phase for phase in profile.phases if phase.name == "optimizer")
    assert phase.wall_ns < profile.totals.wall_ns
    spans_ns = sum(1000 * one["dur"] for one in cpu_spans(trace) if one["name"].startswith("Optimizer.step#"))
    assert spans_ns < profile.totals.wall_ns


def loops(folder: Path) -> dict[str, Callable[[], None]]:
    options: dict[str, Any] = {"wait": 1, "warmup": 1, "active": 2, "root": TESTS, "profile_memory": True}
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = [torch.randn(4, 8) for _ in range(6)]

    def by_step() -> None:
        with deepscope.profile(folder, **options) as prof:
            for batch in batches:
                train_step(net, optimizer, batch)
                prof.step()

    def by_iterate() -> None:
        with deepscope.profile(folder, **options) as prof:
            for batch in prof.iterate(batches):
                train_step(net, optimizer, batch)

    def by_callback() -> None:
        with deepscope.callback(folder, **options) as callback:
            for batch in batches:
                train_step(net, optimizer, batch)
                callback()

    def by_hook() -> None:
        plain = PlainSGD(net.parameters())
        with deepscope.callback(folder, **options) as callback:
            handle = plain.register_step_post_hook(lambda *_: callback())
            for batch in batches:
                train_step(net, plain, batch)
            handle.remove()

    def by_block() -> None:
        with deepscope.profile(folder, root=TESTS, profile_memory=True), torch.profiler.record_function("mine"):
            train_step(net, optimizer, batches[0])

    def by_block_left_open() -> None:
        prof = deepscope.profile(folder, root=TESTS, profile_memory=True).start()
        with torch.profiler.record_function("mine"):
            train_step(net, optimizer, batches[0])
            prof.stop()

    def by_lightning() -> None:
        profiler = DeepProfiler(dirpath=str(folder), **options)
        trainer = pl.Trainer(max_epochs=1, logger=False, profiler=profiler, **QUIET)
        trainer.fit(make_model(), loader(6), loader(1))

    ways = (by_step, by_iterate, by_callback, by_hook, by_lightning, by_block, by_block_left_open)
    return {loop.__name__: loop for loop in ways}


@pytest.mark.parametrize(
    "way", ["by_step", "by_iterate", "by_callback", "by_hook", "by_lightning", "by_block", "by_block_left_open"]
)
def test_no_span_line_or_phase_holds_the_closing(tmp_path: Path, way: str, pauses: list[Pause]) -> None:
    loops(tmp_path)[way]()
    (trace,) = tmp_path.glob("*fit*.gz" if way == "by_lightning" else "*.gz")
    begin, end = recorded_ns(trace)
    assert len([since for since, _ in pauses if since > begin]) >= 3
    assert pauses_within(trace, pauses) == []
    if "block" not in way:
        assert beyond_the_last_step(trace) == []
    profile = load_profile(trace, cache=False)
    assert profile.totals.wall_ns <= end - begin
    assert all(line.total_cpu_ns <= end - begin for line in profile.lines)
    assert all(phase.wall_ns <= end - begin for phase in profile.phases)


def test_looking_at_memory_after_an_exception_is_no_part_of_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[Pause] = []
    monkeypatch.setattr(MemorySurveys, "fail", slowed(MemorySurveys.fail, pauses))
    net, batch = Net(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def record() -> None:
        with deepscope.profile(tmp_path, wait=0, warmup=0, active=3, profile_memory=True, root=TESTS) as prof:
            train_step(net, optimizer, batch)
            prof.step()
            train_step(net, optimizer, batch)
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        record()
    (trace,) = tmp_path.glob("*.gz")
    assert beyond_the_last_step(trace) == []
    assert len(pauses) == 1
    assert pauses_within(trace, pauses) == []


def test_torchs_events_are_gone_with_the_window_where_garbage_is_not_collected(tmp_path: Path) -> None:
    command = """
    import deepscope, gc, os, torch, torch.autograd.profiler, weakref
    made = []
    class Profile(torch.autograd.profiler.profile):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(weakref.ref(self))
    torch.autograd.profiler.profile = Profile
    gc.disable()
    with deepscope.profile(os.environ['FOLDER'], wait=1, warmup=1, active=2, repeat=2) as recording:
        for _ in range(9):
            torch.ones(3).sum()
            recording.step()
    assert len(recording.traces) == 2
    assert len(made) >= 2 and not any(one() for one in made), made
    """
    done = run_python(command, FOLDER=str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
