"""What `profiler="deep"` gives, in both of Lightning's packages."""

import copy
import importlib
import pickle
from pathlib import Path

import pytest

from lightning_runs import PACKAGES, QUIET_MARKS, loader, make_model, trainer

pytestmark = QUIET_MARKS


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
