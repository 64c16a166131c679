"""What DeepScope does in the user's step is no part of the line that it happens in."""

from __future__ import annotations

import posixpath
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import deepscope
from deepscope.analysis.numbers.recording_cost import marked_costs
from deepscope.capture.process_hooks import optimizer_steps
from deepscope.capture.process_hooks.open_recorders import is_at_own_work, own_work, own_work_watchers
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace
from deepscope.trace.read import read_trace
from trainer_runs import line_of

RECORDED = 4
BURN_NS = 15_000_000
PROGRAM = """
import torch

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps):
    for _ in range(steps):
        model(torch.ones(8)).sum().backward()
        optimizer.step()
"""
STEP = "optimizer.step()"

Train = Callable[[int], None]
Bool = npt.NDArray[np.bool_]


class Worker:
    """Listens to steps as DeepScope's own parts do, and is at work for long while lines are recorded."""

    def __init__(self) -> None:
        self.hooks: list[Any] = []

    def __call__(self, *_: Any) -> None:
        self.hooks.append(sys.gettrace())
        began = thread_time_ns()
        while own_work_watchers and thread_time_ns() - began < BURN_NS:
            posixpath.join("a", "b")  # a call, as hooks see them


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    return folder


@pytest.fixture
def train(root: Path) -> Train:
    train: Train = runpy.run_path(str(root / "train.py"))["train"]
    return train


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    leave = optimizer_steps.listen(worker)
    yield worker
    leave()


def marked_by_step(trace: Trace, line: int) -> list[int]:
    """What marks within the runs of a line tell, step by step."""
    events = trace.events
    is_run = (events.kind == Kind.LINE_SCOPE) & np.array([one.line == line for one in trace.scopes])[events.scope]
    is_step = np.array([name.startswith("ProfilerStep#") for name in trace.strings] + [False])[events.name]
    marks, cost_ns = marked_costs(trace)
    is_within = spans_around(events, marks, is_run).any(axis=1)
    return list(cost_ns[is_within] @ spans_around(events, marks, is_step)[is_within])


def spans_around(events: Events, marks: Int64, spans: Bool) -> Bool:
    """Which of the spans (columns) each mark lies in."""
    starts = events.start_ns[marks][:, None]
    found: Bool = (events.start_ns[spans] <= starts) & (starts < events.end_ns[spans])
    return found


def test_it_is_no_part_of_the_line_that_it_happens_in(worker: Worker, train: Train, root: Path, tmp_path: Path) -> None:
    """Marks tell of what comes before the step's end, and of what comes behind the next one's begin.

    They tell it by the thread's CPU clock, which other programs do not move.
    """
    with deepscope.callback(tmp_path, root=root, wait=1, warmup=1, active=RECORDED) as ended:
        leave = [optimizer_steps.listen(lambda *_: ended()), optimizer_steps.listen(worker)]
        train(RECORDED + 4)
        for one in leave:
            one()
    assert ended.recording.profile is not None
    line = line_of(ended.recording.profile, STEP)
    assert line.calls == RECORDED
    [path] = ended.recording.traces
    by_step = marked_by_step(read_trace(path), line.line)
    assert len(by_step) == RECORDED
    assert min(by_step) >= 2 * BURN_NS


def test_no_hook_sees_it_but_as_before_it_sees_what_follows(
    worker: Worker, train: Train, root: Path, tmp_path: Path
) -> None:
    with deepscope.profile(tmp_path, root=root) as recording:
        before = sys.gettrace()
        own_work(own_work(worker))()
        assert sys.gettrace() is before
        train(1)
    assert worker.hooks == [None, None]
    assert line_of(recording.profile, STEP).calls == 1


def test_a_window_that_ends_within_it_leaves_nothing(root: Path, tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=root).start()
    own_work(recording.stop)()
    assert (sys.gettrace(), own_work_watchers, is_at_own_work()) == (None, [], False)


def test_a_window_that_begins_within_it_sees_what_follows(train: Train, root: Path, tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=root)

    @own_work
    def begin() -> Any:
        recording.start()
        return sys.gettrace()

    assert begin() is None
    train(2)
    recording.stop()
    assert line_of(recording.profile, STEP).calls == 2


def test_what_it_raises_arrives_and_it_is_over(train: Train, root: Path, tmp_path: Path) -> None:
    @own_work
    def fail() -> None:
        raise ValueError

    with deepscope.profile(tmp_path, root=root) as recording:
        with pytest.raises(ValueError):
            fail()
        train(3)
    assert not is_at_own_work()
    assert line_of(recording.profile, STEP).calls == 3
