"""Plain steps: what the run's own steps take while nobody records, in the header of its traces."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch

import deepscope
from deepscope.capture import step_timer
from deepscope.capture.recorder import Recorder
from deepscope.lightning import DeepProfiler
from deepscope.trace.format.header import Header
from deepscope.trace.read import read_trace
from lightning_runs import QUIET, QUIET_MARKS, loader, make_model
from recorded import TESTS, Net, train_step

pytestmark = QUIET_MARKS


def header(recorder: Recorder) -> Header:
    return read_trace(recorder.traces[-1]).header


def test_steps_before_the_window_are_known_as_it_ends(record: Callable[..., Recorder]) -> None:
    """Step 0 is the run's first, 1 to 6 are plain, 7 warms up, 8 and 9 are recorded."""
    found = header(record(10, total_steps=10, wait=7, warmup=1, active=2))
    assert found.plain_steps is not None
    assert found.recorded_steps is not None
    assert (found.plain_steps.steps, found.recorded_steps.steps) == (6, 2)
    for times in (found.plain_steps, found.recorded_steps):
        for spread in (times.wall, times.cpu):
            low, middle, high = spread.quartiles_ns
            assert 0 < low <= middle <= high
        assert times.cpu.mean_ns < times.wall.mean_ns + 20_000_000  # the kernel's own clock may tick


def test_without_five_of_them_nothing_is_said(record: Callable[..., Recorder]) -> None:
    found = header(record(6, total_steps=6, wait=1, warmup=1, active=3))
    assert found.plain_steps is None
    assert found.recorded_steps is not None


def test_steps_behind_the_window_count_where_there_were_none_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_timer, "LONGEST_S", 1e6)
    monkeypatch.setattr(step_timer, "PATIENCE_S", 1e6)
    saved = threading.Event()
    net, batch = Net(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    options: dict[str, Any] = {"wait": 1, "warmup": 1, "active": 3, "root": TESTS}
    with deepscope.profile(tmp_path, on_trace_ready=lambda _: saved.set(), **options) as prof:
        for step in range(10):
            assert not saved.is_set(), step
            train_step(net, optimizer, batch)
            prof.step()
        assert saved.wait(100)  # written while the block goes on, with nobody waiting for it
        train_step(net, optimizer, batch)
    (trace,) = tmp_path.glob("*.gz")
    found = read_trace(trace).header
    assert found.plain_steps is not None
    assert found.plain_steps.steps == 5


def test_a_lightning_stage_goes_on_counting_behind_its_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timer, "LONGEST_S", 1e6)
    monkeypatch.setattr(step_timer, "PATIENCE_S", 1e6)
    saved = threading.Event()

    class Wait(pl.Callback):
        def on_train_batch_end(self, _trainer: Any, _module: Any, _outputs: Any, _batch: Any, batch_idx: int) -> None:
            if batch_idx == 12:
                assert saved.wait(100)

    profiler = DeepProfiler(
        dirpath=str(tmp_path), wait=1, warmup=1, active=3, root=TESTS, on_trace_ready=lambda _: saved.set()
    )
    trainer = pl.Trainer(
        max_epochs=1, logger=False, profiler=profiler, callbacks=Wait(), num_sanity_val_steps=0, **QUIET
    )
    trainer.fit(make_model(), loader(16), loader(1))
    (trace,) = tmp_path.glob("*fit*.gz")
    found = read_trace(trace).header
    assert found.plain_steps is not None
    assert found.plain_steps.steps == 5
