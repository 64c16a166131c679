"""Real Trainers with `profiler="deep"`: which windows they leave, and what stands in them."""

import copy
import gc
import importlib
import pickle
import signal
import tempfile
from pathlib import Path

import lightning.pytorch
import pytest
import torch
from torch.utils.data import DataLoader

import deepscope
from deepscope.capture.notices import RecordingWarning
from deepscope.errors import OptionError
from deepscope.lightning import DeepProfiler
from lightning_runs import PACKAGES, QUIET, Stream, loader, make_model, read, recorded, stages
from recorded import load, step_names

OutOfMemoryError = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:You defined a .validation_step. but have no:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*is smaller than the logging interval:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Starting from v1.9.0, `tensorboardX` has been removed:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*`isinstance.treespec, LeafSpec.` is deprecated"),
    pytest.mark.filterwarnings("ignore:.*exists and is not empty:UserWarning"),
]


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trainer(package: str = "lightning.pytorch", **options):
    return importlib.import_module(package).Trainer(**(QUIET | {"profiler": "deep", "logger": False} | options))


def profiled(folder: Path, **options) -> DeepProfiler:
    return DeepProfiler(folder, **options)


# --- the name -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", ["deep", "DEEP"])
def test_the_name_gives_a_profiler_of_the_packages_own_kind(package: str, name: str) -> None:
    base = importlib.import_module(f"{package}.profilers").Profiler
    assert isinstance(trainer(package, profiler=name).profiler, base)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_other_names_keep_working(package: str) -> None:
    profilers = importlib.import_module(f"{package}.profilers")
    assert type(trainer(package, profiler="simple").profiler) is profilers.SimpleProfiler
    assert type(trainer(package, profiler=None).profiler) is profilers.PassThroughProfiler


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_told_of_ours(package: str) -> None:
    with pytest.raises(Exception, match=r"one of \['simple', 'advanced', 'pytorch', 'xla', 'deep'\]"):
        trainer(package, profiler="depe")


@pytest.mark.parametrize("package", PACKAGES)
def test_barebones_gives_lightnings_own_error(package: str) -> None:
    with pytest.raises(ValueError, match=r"barebones=True, profiler='deep'"):
        importlib.import_module(package).Trainer(barebones=True, profiler="deep")


# --- stages and windows ---------------------------------------------------------------------------------------------


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
    profiler = profiled(tmp_path, wait=1, warmup=1, active=2, repeat=2)
    trainer(max_epochs=1, limit_train_batches=10, profiler=profiler).fit(make_model(), loader())
    assert [one.within_steps(".training_step") for one in recorded(tmp_path)] == [[1, 1], [1, 1]]


def test_a_schedule_of_torch_is_followed(tmp_path: Path) -> None:
    schedule = torch.profiler.schedule(skip_first=2, wait=0, warmup=1, active=2, repeat=1)
    trainer(max_epochs=1, limit_train_batches=10, profiler=profiled(tmp_path, schedule=schedule)).fit(
        make_model(), loader()
    )
    assert [one.within_steps(".training_step") for one in recorded(tmp_path)] == [[1, 1]]


def test_windows_go_on_over_epochs(tmp_path: Path) -> None:
    trainer(max_epochs=4, limit_train_batches=2, profiler=profiled(tmp_path, active=4)).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    assert fit.within_steps(".training_step") == [1, 1, 1, 1]


def test_validation_within_fit_is_no_step_of_fit(tmp_path: Path) -> None:
    profiler = profiled(tmp_path, wait=0, warmup=0, active=4, repeat=2)
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
    assert [step_names(one.path) for one in fit] == [step_numbers(0, 1, 2), step_numbers(3, 4, 5)]
    assert [one.deepscope["window"] for one in fit] == [0, 1]
    assert [step_names(one.path)[0] for one in validate] == step_numbers(0, 4)


def step_numbers(*numbers: int) -> list[str]:
    return [f"ProfilerStep#{number}" for number in numbers]


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


# --- what goes wrong ------------------------------------------------------------------------------------------------


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
    assert step_names(fit.path) == step_numbers(0)


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


def test_ctrl_c_keeps_what_was_recorded(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit):
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
        trainer(max_epochs=1, limit_train_batches=6, profiler=profiled(tmp_path, warmup=0)).fit(model, loader())
    assert recorded(tmp_path) == []


def test_a_deepscope_recording_around_the_trainer_costs_a_warning_and_no_run(tmp_path: Path) -> None:
    model = make_model()
    with deepscope.profile(tmp_path / "outer") as outer, pytest.warns(RecordingWarning, match="fit is not recorded"):
        trainer(max_epochs=1, limit_train_batches=6).fit(model, loader())
    assert outer.profile is not None
    assert stages(tmp_path / "deepscope_logs") == []


def test_nothing_is_left_recording(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        trainer(max_epochs=1).fit(_raising(ValueError("mine")), loader())
    assert not torch.autograd._profiler_enabled()


# --- folder, names, options -----------------------------------------------------------------------------------------


def test_traces_go_to_the_loggers_folder(tmp_path: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger

    run = trainer(max_epochs=1, limit_train_batches=6, logger=CSVLogger(tmp_path, name="mine", version=7))
    run.fit(make_model(), loader())
    assert stages(tmp_path / "mine" / "version_7") == ["fit"]


def test_a_folder_and_a_name_given_are_used_and_the_summary_goes_beside_it(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path / "mine", "run7"))
    run.fit(make_model(), loader())
    [fit] = recorded(tmp_path / "mine")
    assert fit.path.name.startswith("run7.fit.rank0.")
    assert "forward" in (tmp_path / "mine" / "fit-run7.txt").read_text()


def test_the_path_is_printed_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trainer(max_epochs=1, limit_train_batches=6).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    assert capfd.readouterr().err.count(f"trace saved to {fit.path}") == 1


def test_on_trace_ready_gets_each_file(tmp_path: Path) -> None:
    seen = []
    profiler = profiled(tmp_path, on_trace_ready=seen.append)
    trainer(max_epochs=1, limit_train_batches=6, profiler=profiler).fit(make_model(), loader())
    assert seen == profiler.traces
    assert read(seen[0]).stage == "fit"


def test_a_rank_that_is_not_chosen_records_nothing(tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=6, profiler=profiled(tmp_path, ranks=[1])).fit(make_model(), loader())
    assert recorded(tmp_path) == []


def test_an_option_that_cannot_be_used_is_refused_quietly_by_the_finalizer() -> None:
    """Lightning's `__del__` runs on what is left of the object; an exception there would be a warning, so an error."""
    with pytest.raises(OptionError, match="active=0"):
        DeepProfiler(active=0)
    gc.collect()


def test_phases_of_the_annotations_stand_in_the_trace(tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=6).fit(make_model(), loader())
    [fit] = recorded(tmp_path)
    phases = fit.deepscope["phases"]
    assert phases["[pl][profile][Strategy]SingleDeviceStrategy.training_step"] == "forward"
    assert phases["[pl][profile][_TrainingEpochLoop].train_dataloader_next"] == "data"
    assert phases["[pl][profile][LightningModule]Net.optimizer_step"] == "optimizer"
    categories = {event["cat"] for event in load(fit.path)["traceEvents"] if event["name"] in phases}
    assert categories == {"user_annotation"}


def test_phases_are_those_of_the_run_and_not_of_the_process(tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=6).fit(make_model(), loader())
    with deepscope.profile(tmp_path / "plain") as recording:
        torch.ones(3).sum()
    assert set(load(recording.traces[0])["deepscope"]["phases"]) == {
        f"deepscope.{phase}" for phase in ("data", "forward", "backward", "optimizer")
    }


def test_the_lines_of_the_model_stand_in_the_trace(tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=6, profiler=profiled(tmp_path, root=Path(__file__).parents[1])).fit(
        make_model(), loader()
    )
    [fit] = recorded(tmp_path)
    functions = {scope[3] for scope in fit.deepscope["scopes"]}
    assert "make_model.<locals>.Net.training_step" in functions


# --- the summary ----------------------------------------------------------------------------------------------------


def test_the_summary_shows_hot_lines_and_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    run = trainer(max_epochs=1, limit_train_batches=6, profiler=profiled(tmp_path, root=Path(__file__).parents[1]))
    run.fit(make_model(), loader())
    summary = run.profiler.summary()
    assert "lightning_runs.py" in summary
    for phase in ("data", "forward", "backward", "optimizer", "other"):
        assert phase in summary
    assert "3 steps" in summary


def test_a_trace_that_cannot_be_read_costs_a_line(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=6)
    run.fit(make_model(), loader())
    run.profiler.traces[0].write_bytes(b"")
    assert "no summary of" in run.profiler.summary()


# --- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda profiler: pickle.loads(pickle.dumps(profiler))])
def test_a_profiler_that_has_run_can_be_copied_and_pickled(package: str, duplicate, tmp_path: Path) -> None:
    run = trainer(package, max_epochs=1, limit_train_batches=6)
    run.fit(make_model(package), loader())
    again = duplicate(run.profiler)
    assert again.options == run.profiler.options
    assert again.traces == []
    trainer(package, max_epochs=1, limit_train_batches=6, profiler=again).fit(make_model(package), loader())
    assert len(again.traces) == 1
