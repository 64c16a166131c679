"""Real Trainers: how long the sanity check took, as the trace of fit tells it."""

import importlib
import time
from pathlib import Path

import pytest

import deepscope
from lightning_runs import PACKAGES, QUIET_MARKS, loader, make_model, recorded, trainer

pytestmark = QUIET_MARKS

SLEPT = 0.15


def sleeping(self, batch, batch_idx):
    time.sleep(SLEPT)
    self(batch)


def trainer_settings(folder: Path) -> dict:
    fit = next(one for one in recorded(folder) if one.stage == "fit")
    return fit.deepscope["settings"]["trainer"]


@pytest.mark.parametrize("package", PACKAGES)
def test_its_length_and_the_planned_batches_are_told(package: str, tmp_path: Path) -> None:
    pl = importlib.import_module(package)

    class Watch(pl.Callback):
        begun = ended = 0

        def on_sanity_check_start(self, *_):
            self.begun = time.perf_counter_ns()

        def on_sanity_check_end(self, *_):
            self.ended = time.perf_counter_ns()

    watch = Watch()
    run = trainer(package, max_epochs=2, limit_train_batches=8, limit_val_batches=6, callbacks=[watch])
    run.fit(make_model(package, validation_step=sleeping), loader(), loader())
    options = trainer_settings(tmp_path)
    assert options["planned_batches"] == 16
    assert 2 * SLEPT * 1e9 <= options["sanity_check_ns"] <= watch.ended - watch.begun


def test_it_is_found_in_a_short_run(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=8, limit_val_batches=2)
    run.fit(make_model(validation_step=sleeping), loader(), loader())
    profile = deepscope.load_profile(next(one.path for one in recorded(tmp_path) if one.stage == "fit"))
    (found,) = [one for one in profile.findings if one.code == "DS025"]
    assert found.evidence["training_steps"] == 8
    assert found.evidence["sanity_check_ns"] == trainer_settings(tmp_path)["sanity_check_ns"]


def test_without_a_check_or_with_an_end_that_is_not_certain_nothing_is_told(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=8, limit_val_batches=2, num_sanity_val_steps=0)
    run.fit(make_model(), loader(), loader())
    assert trainer_settings(tmp_path)["sanity_check_ns"] == 0
    profile = deepscope.load_profile(next(one.path for one in recorded(tmp_path) if one.stage == "fit"))
    assert "DS025" not in {one.code for one in profile.findings}


def test_early_stopping_leaves_the_number_of_batches_open(tmp_path: Path) -> None:
    from lightning.pytorch.callbacks import EarlyStopping

    def logging(self, batch, batch_idx):
        self.log("val_loss", self(batch).square().mean())

    run = trainer(max_epochs=3, limit_train_batches=8, limit_val_batches=2, callbacks=[EarlyStopping("val_loss")])
    run.fit(make_model(validation_step=logging), loader(), loader())
    assert trainer_settings(tmp_path)["planned_batches"] == 0
    assert trainer_settings(tmp_path)["sanity_check_ns"] > 0
