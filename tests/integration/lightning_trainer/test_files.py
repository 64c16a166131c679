"""Where a Trainer's traces and summaries go, and what stands in them."""

import gc
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope import load_profile
from deepscope.capture.saving import saver
from deepscope.errors import OptionError
from deepscope.lightning import DeepProfiler
from lightning_runs import QUIET_MARKS, loader, make_model, read, recorded, stages, trainer
from recorded import TESTS, load, name_of

pytestmark = QUIET_MARKS


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
    profiler = DeepProfiler(tmp_path, on_trace_ready=seen.append)
    trainer(max_epochs=1, limit_train_batches=6, profiler=profiler).fit(make_model(), loader())
    assert seen == profiler.traces
    assert read(seen[0]).stage == "fit"


def test_a_rank_that_is_not_chosen_records_nothing(tmp_path: Path) -> None:
    trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path, ranks=[1])).fit(make_model(), loader())
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
    trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path, root=TESTS)).fit(
        make_model(), loader()
    )
    [fit] = recorded(tmp_path)
    functions = {scope[3] for scope in fit.deepscope["scopes"]}
    assert name_of("make_model.<locals>.Net.training_step") in functions


def test_the_summary_shows_hot_lines_and_phases_on_one_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("LINES", "24")
    run = trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path, root=TESTS))
    run.fit(make_model(), loader())
    summary = run.profiler.summary()
    assert "lightning_runs.py" in summary
    for phase in ("data", "forward", "backward", "optimizer", "other"):
        assert phase in summary
    assert "3 steps" in summary
    assert "(Lightning)" in summary
    assert str(run.profiler.traces[-1].name) in summary.splitlines()[-1]
    assert len(summary.splitlines()) < 24


def test_the_summary_takes_the_profile_that_the_writing_process_has_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver, "IN_PROCESS_BYTES", 0)
    monkeypatch.setattr("deepscope.store.load.read_profile", lambda *_, **__: pytest.fail("the trace is read"))
    run = trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path, root=TESTS))
    run.fit(make_model(), loader())
    assert "verdict" in run.profiler.summary()


def test_what_lightning_does_on_its_own_account_is_told_and_logging_too(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=6, profiler=DeepProfiler(tmp_path, root=TESTS))
    run.fit(make_model(), loader())
    profile = load_profile(run.profiler.traces[-1])
    parts = {part.part: part.cost_ns for part in profile.framework}
    assert parts["loops"] > 0
    assert parts["logging"] > 0
    calls_fit = [line for line in profile.lines if line.framework_ns]
    assert [(line.file, line.line) for line in calls_fit] == [(profile.framework[0].file, profile.framework[0].line)]
    assert "run.fit(" in (calls_fit[0].text or "")
    assert sum(parts.values()) == calls_fit[0].framework_ns <= calls_fit[0].python_ns
    assert not any(name.startswith("update_") for name in vars(run._logger_connector)), "it is left as it was"


def test_a_trace_that_cannot_be_read_costs_a_line(tmp_path: Path) -> None:
    run = trainer(max_epochs=1, limit_train_batches=6)
    run.fit(make_model(), loader())
    run.profiler.traces[0].write_bytes(b"")
    assert "no summary of" in run.profiler.summary()
