"""What goes wrong under a Trainer: what was recorded is kept, and nothing stays behind."""

import signal
import tempfile
from contextlib import nullcontext
from pathlib import Path

import lightning.pytorch
import pytest
import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

import deepscope
from deepscope.capture import torch_compat
from deepscope.capture.notices import RecordingWarning
from deepscope.lightning import DeepProfiler
from lightning_runs import QUIET_MARKS, Stream, loader, make_model, recorded, stages, trainer
from recorded import hide_what_is_alive, step_names, steps

pytestmark = QUIET_MARKS

_ENDS_AT_CTRL_C = not lightning.pytorch.__version__.startswith("2.1.")
"""Lightning 2.1 comes back from fit; 2.6 ends the process."""
OutOfMemoryError = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


def _raising(error: BaseException, hook: str = "training_step"):
    def step(self, batch, batch_idx):
        if batch_idx == 3:
            raise error
        return self(batch).square().mean()

    return make_model(**{hook: step})


@pytest.mark.parametrize("error", [ValueError("mine"), OutOfMemoryError("CUDA out of memory")])
def test_an_exception_in_training_keeps_what_was_recorded(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(error), match=str(error)):
        trainer(max_epochs=1).fit(_raising(error), loader())
    [fit] = recorded(tmp_path)
    assert fit.deepscope["complete"] is False
    assert fit.within_steps(".training_step") == [1, 1]


def test_where_memory_runs_out_the_trace_and_the_summary_say_what_was_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_what_is_alive(monkeypatch)

    def step(self, batch, batch_idx):
        loss = self(batch.expand(256, 8)).square().mean()
        if batch_idx == 3:
            raise OutOfMemoryError("CUDA out of memory")
        return loss

    profiler = DeepProfiler(tmp_path, profile_memory=True)
    model = make_model(training_step=step)
    with pytest.raises(OutOfMemoryError):
        trainer(max_epochs=1, profiler=profiler).fit(model, loader())
    (path,) = profiler.traces
    profile = deepscope.load_profile(path)
    failure = profile.memory.failure
    assert failure is not None
    assert failure.held.parameters_bytes == 4 * (8 * 2 + 2)
    assert failure.held.inputs_bytes == 4 * 8
    shown = 4 * 256 * 2 if torch_compat.shows_saved_values() else 0
    assert failure.held.activations_bytes == shown, "the layer keeps its input, the square what it is of"
    assert "failed" in profiler.summary()


def test_the_window_is_saved_before_the_exception_reaches_anyone(tmp_path: Path) -> None:
    seen = []

    def on_before_backward(self, loss):
        if self.trainer.fit_loop.batch_idx == 3:
            raise OutOfMemoryError("CUDA out of memory")

    def training_step(self, batch, batch_idx):
        try:
            self.manual_backward(self(batch).square().mean())
        except OutOfMemoryError:
            seen.extend(stages(tmp_path))

    model = make_model(training_step=training_step, on_before_backward=on_before_backward)
    model.automatic_optimization = False
    trainer(max_epochs=1, limit_train_batches=8).fit(model, loader())
    assert seen == stages(tmp_path) == ["fit"]


def test_a_run_that_time_ends_early_has_a_trace(tmp_path: Path) -> None:
    class Hurried(lightning.pytorch.Callback):
        def on_train_batch_end(self, trainer, *_) -> None:
            trainer.should_stop = True

    trainer(max_epochs=9, max_time="00:01:00:00", min_epochs=0, callbacks=[Hurried()]).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    assert step_names(fit.path) == steps(0)


def test_after_an_exception_no_folder_of_the_workers_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    run = trainer(max_epochs=1, limit_train_batches=6)
    with pytest.raises(ValueError):
        run.fit(_raising(ValueError("no")), loader())
    assert not list((tmp_path / "tmp").iterdir())


def test_an_exception_in_evaluation_keeps_what_was_recorded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        trainer().test(_raising(ValueError("mine"), "test_step"), loader(), verbose=False)
    [test] = recorded(tmp_path)
    assert (test.stage, test.deepscope["complete"]) == ("test", False)


def test_an_exception_in_the_data_loader_keeps_what_was_recorded(tmp_path: Path) -> None:
    class Broken(Stream):
        def __iter__(self):
            yield from torch.ones(4, 8)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        trainer(max_epochs=1).fit(make_model(), DataLoader(Broken(4), batch_size=1))
    [fit] = recorded(tmp_path)
    assert fit.deepscope["complete"] is False


@pytest.mark.filterwarnings("ignore:Detected KeyboardInterrupt")
def test_ctrl_c_keeps_what_was_recorded(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) if _ENDS_AT_CTRL_C else nullcontext():
            trainer(max_epochs=1).fit(_raising(KeyboardInterrupt()), loader())
    finally:
        signal.signal(signal.SIGINT, before)
    [fit] = recorded(tmp_path)
    assert fit.deepscope["complete"] is False


def test_a_profiler_goes_on_after_a_run_that_failed(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=6)
    with pytest.raises(ValueError, match="mine"):
        run.fit(_raising(ValueError("mine")), loader())
    run.fit(make_model(), loader())
    assert [one.deepscope["complete"] for one in recorded(tmp_path)] == [False, True]


def test_a_torch_profiler_that_is_running_already_costs_a_warning_and_no_run(tmp_path: Path) -> None:
    model = make_model()
    with torch.profiler.profile(), pytest.warns(RecordingWarning, match="profiler"):
        trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path, warmup=0)).fit(model, loader())
    assert recorded(tmp_path) == []


def test_a_deepscope_recording_around_the_trainer_costs_a_warning_and_no_run(tmp_path: Path) -> None:
    model = make_model()
    with deepscope.profile(tmp_path / "outer") as outer, pytest.warns(RecordingWarning, match="fit is not recorded"):
        trainer(max_epochs=1, limit_train_batches=6).fit(model, loader())
    assert outer.profile is not None
    assert stages(tmp_path / "deepscope_logs") == []


def test_a_temporary_folder_that_is_missing_costs_the_workers_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    model = make_model()
    with pytest.warns(RecordingWarning, match="workers are not timed: FileNotFoundError") as caught:
        trainer(max_epochs=1, limit_train_batches=6).fit(model, loader())
    assert sum(warning.category is RecordingWarning for warning in caught) == 1
    assert stages(tmp_path) == ["fit"]


@pytest.mark.parametrize("broken", ["profiler.run_of", "runs.armed_clocks", "profiler.batches_of"])
def test_whatever_fails_in_the_profiler_costs_one_warning_and_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr(f"deepscope.lightning.{broken}", lambda *_: 1 / 0)
    model = make_model()
    run = trainer(max_epochs=1, limit_train_batches=6)
    with pytest.warns(RecordingWarning, match="recording stopped: ZeroDivisionError"):
        run.fit(model, loader())
    assert run.global_step == 6
    assert recorded(tmp_path) == []


@pytest.mark.parametrize(
    ("stage", "hook"),
    [
        ("fit", "training_step"),
        ("fit", "configure_optimizers"),
        ("fit", "validation_step"),
        ("fit", "on_train_end"),
        ("validate", "validation_step"),
        ("test", "test_step"),
        ("predict", "predict_step"),
    ],
)
@pytest.mark.parametrize("sanity", [0, 1])
def test_nothing_is_left_recording(tmp_path: Path, stage: str, hook: str, sanity: int) -> None:
    def fail(self, *_):
        raise ValueError("mine")

    start = _MultiProcessingDataLoaderIter.__init__
    run = trainer(max_epochs=1, limit_train_batches=6, num_sanity_val_steps=sanity)
    given = (loader(), loader()) if stage == "fit" else (loader(),)
    with pytest.raises(ValueError, match="mine"):
        getattr(run, stage)(make_model(**{hook: fail}), *given)
    assert not torch.autograd._profiler_enabled()
    assert _MultiProcessingDataLoaderIter.__init__ is start
