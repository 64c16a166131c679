"""Scalars of `deepscope export --to tensorboard` stand at the steps at which the Trainer's own loggers write."""

from pathlib import Path
from typing import Any

import pytest

from deepscope.lightning import DeepProfiler
from deepscope.report.exports.tensorboard import scalars
from deepscope.store.load import Traces
from lightning_runs import PACKAGES, QUIET_MARKS, loader, make_model, trainer

pytestmark = QUIET_MARKS


def counted(package: str) -> tuple[Any, list[int]]:
    """A model, and the steps that loggers had got to as each of its batches was trained."""
    seen: list[int] = []

    def training_step(self: Any, batch: Any, batch_idx: int) -> Any:
        seen.append(self.trainer.fit_loop.epoch_loop._batches_that_stepped)
        return self(batch).square().mean()

    return make_model(package, training_step=training_step), seen


def exported(folder: Path) -> list[int]:
    [analysis] = Traces(folder)
    return [point.step for point in scalars(analysis) if point.tag == "deepscope/step_ms"]


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("together", [1, 2])
def test_steps_are_those_of_the_loggers(package: str, together: int, tmp_path: Path) -> None:
    profiler = DeepProfiler(tmp_path / "traces", wait=3, warmup=1, active=3)
    run = trainer(package, max_epochs=1, limit_train_batches=10, profiler=profiler, accumulate_grad_batches=together)
    model, seen = counted(package)
    run.fit(model, loader())
    assert exported(tmp_path / "traces") == seen[4:7]


def test_a_run_that_is_resumed_counts_on(tmp_path: Path) -> None:
    model, _ = counted(PACKAGES[0])
    first = trainer(max_epochs=1, limit_train_batches=5, profiler=None)
    first.fit(model, loader())
    first.save_checkpoint(tmp_path / "run.ckpt")
    model, seen = counted(PACKAGES[0])
    run = trainer(max_epochs=3, limit_train_batches=5, profiler=DeepProfiler(tmp_path / "traces", wait=1, active=2))
    run.fit(model, loader(), ckpt_path=str(tmp_path / "run.ckpt"))
    assert seen[0] == 5
    assert exported(tmp_path / "traces") == seen[2:4]


def test_validation_in_between_does_not_shift_the_steps(tmp_path: Path) -> None:
    profiler = DeepProfiler(tmp_path / "traces", wait=4, warmup=1, active=2)
    run = trainer(max_epochs=1, limit_train_batches=12, limit_val_batches=2, val_check_interval=3, profiler=profiler)
    model, seen = counted(PACKAGES[0])
    run.fit(model, loader(), loader())
    found = exported(tmp_path / "traces")
    assert found
    assert set(found) <= set(seen)
    assert found == list(range(found[0], found[0] + len(found)))
