"""A recorder over a small training loop; after each test nothing of it may be left in the interpreter."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
from recorded import TESTS, Net, train_step


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Recorder]:
    """Runs so many steps under a recorder of these options and waits for its files."""

    def run(steps: int, *, total_steps: int | None = None, scheduled: bool = True, **options: Any) -> Recorder:
        chosen = RecordingOptions(root=TESTS, **options)
        recorder = Recorder(
            RecordingSession(chosen, name="job"),
            Plan(Schedule.of(chosen, total_steps)) if scheduled else None,
            folder=tmp_path / "runs",
        )
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        recorder.start()
        for _ in range(steps):
            train_step(net, optimizer, torch.randn(4, 8))
            recorder.step()
        recorder.stop()
        recorder.wait()
        return recorder

    return run


@pytest.fixture(autouse=True)
def nothing_is_left_installed() -> Iterator[None]:
    trace_function = sys.gettrace()
    yield
    assert sys.gettrace() is trace_function
    if sys.version_info >= (3, 12):
        assert not [number for number in (3, 4) if sys.monitoring.get_tool(number)]
    assert not torch.autograd._profiler_enabled()


@pytest.fixture
def nothing_compiled() -> None:
    """What tests before this one compiled in this process is let go: an audit leaves a process that compiles alone."""
    if dynamo := sys.modules.get("torch._dynamo"):
        dynamo.reset()
        gc.collect()
