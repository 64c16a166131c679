"""Real Trainers with `profiler="deep"`: which windows each stage leaves."""

import threading
import time
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from torch.utils.data import DataLoader

from deepscope.lightning import DeepProfiler
from deepscope.trace.read import read_trace
from lightning_runs import PACKAGES, QUIET_MARKS, Stream, loader, make_model, recorded, stages, trainer
from recorded import step_names, steps

pytestmark = QUIET_MARKS


@pytest.mark.parametrize("package", PACKAGES)
def test_every_stage_gets_a_window(package: str, tmp_path: Path) -> None:
    run = trainer(package, max_epochs=1, limit_train_batches=8, limit_val_batches=6)
    model = make_model(package)
    run.fit(model, loader(), loader())
    assert sorted(stages(tmp_path)) == ["fit", "sanity_check", "validate"]
    run.validate(model, loader(), verbose=False)
    run.test(model, loader(), verbose=False)
    run.predict(model, loader())
    found = recorded(tmp_path / "deepscope_logs")
    assert [one.stage for one in found] == ["sanity_check", "fit", "validate", "validate", "test", "predict"]
    assert all(one.deepscope["stage"] == one.stage and one.deepscope["complete"] for one in found)
    assert [len(one.steps) for one in found] == [1, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_trainers_options_are_told(package: str, tmp_path: Path) -> None:
    run = trainer(package, max_epochs=1, limit_train_batches=8, accumulate_grad_batches=2, gradient_clip_val=0.5)
    run.fit(make_model(package), loader())
    [fit] = recorded(tmp_path)
    options = fit.deepscope["settings"]["trainer"]
    assert (options["accumulate_grad_batches"], options["gradient_clip_val"]) == (2, 0.5)
    assert options["log_every_n_steps"] == run.log_every_n_steps
    assert fit.deepscope["settings"]["loaders"]


def test_a_step_runs_from_fetch_to_optimizer(tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=8).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    for action in ("train_dataloader_next", ".training_step", ".backward", ".optimizer_step", ".on_train_batch_end"):
        assert fit.within_steps(action) == [1, 1, 1], action


@pytest.mark.parametrize("batches", [1, 2, 3, 4])
def test_a_run_shorter_than_the_schedule_still_yields_a_trace(batches: int, tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=batches).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1] * max(1, batches - 2)


def test_fast_dev_run_yields_traces(tmp_path: Path) -> None:
    trainer(fast_dev_run=True, logger=True).fit(make_model(), loader(), loader())
    assert stages(tmp_path) == ["fit", "validate"]


def test_a_stream_of_one_batch_yields_a_trace(tmp_path: Path) -> None:
    trainer(max_epochs=1).fit(make_model(), DataLoader(Stream(1), batch_size=1))
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1]


def test_a_longer_stream_yields_the_scheduled_window_alone(tmp_path: Path) -> None:
    trainer(max_epochs=1).fit(make_model(), DataLoader(Stream(9), batch_size=1))
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1, 1, 1]


def test_repeat_yields_several(tmp_path: Path) -> None:
    profiler = DeepProfiler(tmp_path, wait=1, warmup=1, active=2, repeat=2)
    trainer(max_epochs=1, limit_train_batches=10, profiler=profiler).fit(make_model(), loader())
    assert [one.within_steps(".training_step") for one in recorded(tmp_path)] == [[1, 1], [1, 1]]


def test_a_schedule_of_torch_is_followed(tmp_path: Path) -> None:
    schedule = torch.profiler.schedule(skip_first=2, wait=0, warmup=1, active=2, repeat=1)
    trainer(max_epochs=1, limit_train_batches=10, profiler=DeepProfiler(tmp_path, schedule=schedule)).fit(
        make_model(), loader()
    )
    assert [one.within_steps(".training_step") for one in recorded(tmp_path)] == [[1, 1]]


def test_windows_go_on_over_epochs(tmp_path: Path) -> None:
    trainer(max_epochs=4, limit_train_batches=2, profiler=DeepProfiler(tmp_path, active=4)).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1, 1, 1, 1]


def test_validation_within_fit_is_no_step_of_fit(tmp_path: Path) -> None:
    profiler = DeepProfiler(tmp_path, wait=0, warmup=0, active=4, repeat=2)
    run = trainer(max_epochs=3, limit_train_batches=3, limit_val_batches=4, num_sanity_val_steps=0, profiler=profiler)
    run.fit(make_model(), loader(), loader())
    found = recorded(tmp_path)
    fit = [one for one in found if one.stage == "fit"]
    validate = [one for one in found if one.stage == "validate"]
    assert [one.within_steps(".training_step") for one in fit] == [[1, 1, 1], [1, 1, 1]]
    assert [one.within_steps(".validation_step") for one in validate] == [[1] * 4, [1] * 4]
    assert not any("validation_step" in name for one in fit for name, _, _ in one.annotations)
    assert not any("training_step" in name for one in validate for name, _, _ in one.annotations)
    assert all(one.deepscope["complete"] for one in found)
    assert [step_names(one.path) for one in fit] == [steps(0, 1, 2), steps(3, 4, 5)]
    assert [one.deepscope["window"] for one in fit] == [0, 1]
    assert [step_names(one.path)[0] for one in validate] == steps(0, 4)


def test_validation_after_every_batch_leaves_both_their_windows(tmp_path: Path) -> None:
    run = trainer(
        max_epochs=1, limit_train_batches=6, limit_val_batches=1, val_check_interval=1, num_sanity_val_steps=0
    )
    run.fit(make_model(), loader(), loader())
    assert sorted(stages(tmp_path)) == ["fit", "validate"]


def test_with_accumulation_each_batch_is_a_step(tmp_path: Path) -> None:
    trainer(max_steps=2, accumulate_grad_batches=4, max_epochs=1).fit(make_model(), loader(8))
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1, 1, 1]


def test_manual_optimization_is_recorded(tmp_path: Path) -> None:
    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self(batch).square().mean())
        optimizer.step()

    model = make_model(training_step=training_step)
    model.automatic_optimization = False
    trainer(max_steps=3, max_epochs=1).fit(model, loader())
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1] * len(fit.steps)


def test_two_trainers_in_one_process(tmp_path: Path) -> None:
    for name in ("a", "b"):
        trainer(max_epochs=1, limit_train_batches=6, default_root_dir=tmp_path / name).fit(make_model(), loader())
    assert stages(tmp_path / "a") == stages(tmp_path / "b") == ["fit"]


def test_one_profiler_serves_two_trainers(tmp_path: Path) -> None:
    profiler = DeepProfiler()
    for name in ("a", "b"):
        run = trainer(max_epochs=1, limit_train_batches=6, default_root_dir=tmp_path / name, profiler=profiler)
        run.fit(make_model(), loader())
        assert [path.parent for path in profiler.traces] == [tmp_path / name / "deepscope_logs"]


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="counters of /proc")
def test_a_whole_run_is_counted_through_all_its_stages(tmp_path: Path) -> None:
    moments: list[int] = []

    class Notes(Callback):
        def on_train_batch_start(self, *_: object) -> None:
            moments.append(time.time_ns())

    profiler = DeepProfiler(counters="run", counter_interval=0.01)
    run = trainer(profiler=profiler, callbacks=[Notes()], max_epochs=2, limit_train_batches=8, limit_val_batches=2)
    run.fit(make_model(), loader(), loader())
    assert sorted(stages(tmp_path)) == ["fit", "sanity_check", "validate"]
    (path,) = tmp_path.rglob("*.counters")
    whole = read_trace(path)
    assert whole.base_ns + int(whole.counters.ts_ns.min()) <= moments[0]
    assert whole.base_ns + int(whole.counters.ts_ns.max()) >= moments[-1]  # the schedule was over in the first epoch
    assert whole.header.run_id == read_trace(profiler.traces[0]).header.run_id
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]
