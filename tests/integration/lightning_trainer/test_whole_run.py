"""Real Trainers: what the time of the whole run went to, most of which no window has."""

import time
from pathlib import Path

import pytest

import deepscope
from deepscope.lightning import DeepProfiler
from deepscope.records import Profile
from deepscope.report.run_verdict import run_verdict
from deepscope.report.text_report import text_report
from deepscope.report.whole_run import run_rows
from lightning_runs import PACKAGES, QUIET_MARKS, Vectors, loader, make_model, recorded, trainer

pytestmark = QUIET_MARKS

STEP_S, VALIDATION_S = 0.002, 0.02
EPOCHS, STEPS, BATCHES = 3, 4, 5


def training_slowly(self, batch, batch_idx):
    time.sleep(STEP_S)
    return self(batch).square().mean()


def validating_slowly(self, batch, batch_idx):
    time.sleep(VALIDATION_S)
    self(batch)


def profile_of(folder: Path, stage: str = "fit") -> Profile:
    return deepscope.load_profile([one.path for one in recorded(folder) if one.stage == stage][-1])


def times(profile: Profile) -> dict[str, int]:
    assert profile.whole_run is not None
    return {part.name: part.time_ns for part in profile.whole_run.parts}


def counts(profile: Profile) -> dict[str, int]:
    assert profile.whole_run is not None
    return {part.name: part.times for part in profile.whole_run.parts}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_run_that_validates_too_often_says_so_first_and_its_parts_sum_to_the_run(
    package: str, tmp_path: Path
) -> None:
    model = make_model(package, training_step=training_slowly, validation_step=validating_slowly)
    run = trainer(
        package, max_epochs=EPOCHS, limit_train_batches=STEPS, limit_val_batches=BATCHES, val_check_interval=1,
        num_sanity_val_steps=0,
    )  # fmt: skip
    began = time.perf_counter_ns()
    run.fit(model, loader(), loader())
    lasted = time.perf_counter_ns() - began

    profile = profile_of(tmp_path)
    whole, parts = profile.whole_run, times(profile)
    assert whole is not None
    assert sum(parts.values()) == whole.duration_ns <= lasted
    assert parts["evaluation"] >= EPOCHS * STEPS * BATCHES * VALIDATION_S * 1e9
    assert parts["steps"] >= EPOCHS * STEPS * STEP_S * 1e9
    assert counts(profile)["evaluation"] == counts(profile)["steps"] == EPOCHS * STEPS
    assert [(one.number, one.steps) for one in whole.epochs] == [(0, STEPS), (1, STEPS), (2, STEPS)]
    assert sum(one.steps_ns + one.data_ns for one in whole.epochs) == parts["steps"] + parts["data"]
    assert STEP_S * 1e9 <= whole.first_step_ns <= whole.epochs[0].steps_ns + whole.epochs[0].data_ns

    said = run_verdict(profile)
    assert said.cause == "evaluation"
    assert said.share == parts["evaluation"] / (whole.duration_ns - parts["recording"])
    assert said.sentence.startswith("Validation takes ")


def test_its_table_has_a_row_for_each_part(tmp_path: Path) -> None:
    run = trainer(max_epochs=2, limit_train_batches=4, limit_val_batches=2)
    run.fit(make_model(), loader(), loader())
    profile = profile_of(tmp_path)
    assert profile.whole_run is not None
    rows = [row for row in run_rows(profile) if row.section == "run"]
    assert sum(row.time_ns for row in rows) == profile.whole_run.duration_ns
    text = text_report(profile, by="run", width=120)
    assert all(row.name in text for row in rows)
    assert counts(profile)["evaluation"] == 2  # and the sanity check is a part of the start


def test_loading_saving_and_logging_have_parts_of_their_own(tmp_path: Path) -> None:
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger
    from torch.utils.data import DataLoader

    class Slow(Vectors):
        def __getitem__(self, index):
            time.sleep(STEP_S)
            return super().__getitem__(index)

    class SlowLogger(CSVLogger):
        def log_metrics(self, metrics, step=None):
            time.sleep(STEP_S)
            super().log_metrics(metrics, step)

    class SlowSave(ModelCheckpoint):
        def on_save_checkpoint(self, *_):
            time.sleep(VALIDATION_S)

    def logging(self, batch, batch_idx):
        loss = self(batch).square().mean()
        self.log("loss", loss)
        return loss

    run = trainer(
        max_epochs=2, limit_train_batches=4, limit_val_batches=0, log_every_n_steps=1, enable_checkpointing=True,
        logger=SlowLogger(tmp_path), callbacks=[SlowSave(every_n_epochs=1, save_top_k=-1)],
    )  # fmt: skip
    run.fit(make_model(training_step=logging), DataLoader(Slow(64), batch_size=1))
    profile = profile_of(tmp_path)
    parts = times(profile)
    assert sum(parts.values()) == profile.whole_run.duration_ns
    assert parts["data"] >= 8 * STEP_S * 1e9
    assert parts["logging"] >= 8 * STEP_S * 1e9
    assert parts["evaluation"] == 0
    tells_of_saving = "save_checkpoint" in type(run).save_checkpoint.__code__.co_consts  # Lightning 2.1 does not
    assert ("checkpoint" in parts) is tells_of_saving
    if tells_of_saving:
        assert parts["checkpoint"] >= 2 * VALIDATION_S * 1e9
        assert counts(profile)["checkpoint"] == 2


def test_a_run_that_fails_is_accounted_for_up_to_then(tmp_path: Path) -> None:
    def failing(self, batch, batch_idx):
        if batch_idx == 6:
            raise ValueError("no more")
        return self(batch).square().mean()

    run = trainer(max_epochs=1, limit_train_batches=8, limit_val_batches=0)
    with pytest.raises(ValueError, match="no more"):
        run.fit(make_model(training_step=failing), loader())
    profile = profile_of(tmp_path)
    assert profile.whole_run is not None
    assert sum(times(profile).values()) == profile.whole_run.duration_ns
    assert [(one.number, one.steps) for one in profile.whole_run.epochs] == [(0, 6)]


def test_the_next_run_of_the_same_profiler_has_an_account_of_its_own(tmp_path: Path) -> None:
    profiler = DeepProfiler(tmp_path)
    for steps in (4, 5):
        run = trainer(max_epochs=1, limit_train_batches=steps, limit_val_batches=0, profiler=profiler)
        run.fit(make_model(), loader())
    found = [deepscope.load_profile(one.path) for one in recorded(tmp_path)]
    assert [counts(profile)["steps"] for profile in found] == [4, 5]


def test_validation_alone_has_no_account(tmp_path: Path) -> None:
    trainer(limit_val_batches=4).validate(make_model(), loader(), verbose=False)
    assert profile_of(tmp_path, "validate").whole_run is None
    assert not list(tmp_path.rglob("*.deepscope-run"))
