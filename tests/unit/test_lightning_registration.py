"""The hook itself, on stand-ins for Lightning's `trainer.setup`."""

import logging
import subprocess
import sys
import types
import warnings

import pytest

from deepscope import lightning


class StandIn:
    """In the place of `DeepProfiler`."""


@pytest.fixture
def setup_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """`lightning.pytorch.trainer.setup` with a look-up of two names."""
    module = types.ModuleType("lightning.pytorch.trainer.setup")

    def _init_profiler(trainer, profiler):
        known = ["simple", "pytorch"]
        if isinstance(profiler, str) and profiler.lower() not in known:
            raise ValueError(f"it can only be one of {known}")
        trainer.profiler = profiler

    module._init_profiler = _init_profiler
    monkeypatch.setattr(lightning, "failed", set())
    monkeypatch.setattr(lightning.importlib, "import_module", lambda name: _found(module, name))
    return module


def _found(module: types.ModuleType, name: str) -> object:
    return module if name.endswith(".setup") else types.SimpleNamespace(DeepProfiler=StandIn)


@pytest.mark.parametrize("name", ["deep", "Deep", "DEEP"])
def test_the_name_is_found_in_any_case(setup_module: types.ModuleType, name: str) -> None:
    assert lightning.register_lightning() == []
    trainer = types.SimpleNamespace()
    setup_module._init_profiler(trainer, name)
    assert isinstance(trainer.profiler, StandIn)


@pytest.mark.parametrize("profiler", ["simple", None, object()])
def test_everything_else_goes_to_lightning(setup_module: types.ModuleType, profiler: object) -> None:
    lightning.register_lightning()
    trainer = types.SimpleNamespace()
    setup_module._init_profiler(trainer, profiler)
    assert trainer.profiler is profiler


def test_the_message_about_an_unknown_name_lists_ours_too(setup_module: types.ModuleType) -> None:
    lightning.register_lightning()
    with pytest.raises(ValueError, match=r"one of \['simple', 'pytorch', 'deep'\]"):
        setup_module._init_profiler(types.SimpleNamespace(), "dep")


def test_registering_again_changes_nothing(setup_module: types.ModuleType) -> None:
    lightning.register_lightning()
    wrapped = setup_module._init_profiler
    lightning.register_lightning()
    assert setup_module._init_profiler is wrapped


def test_a_lightning_without_the_look_up_costs_one_warning(setup_module: types.ModuleType) -> None:
    del setup_module._init_profiler
    with pytest.warns(RuntimeWarning, match="DeepProfiler"):
        assert lightning.register_lightning() == []
    assert lightning.register_lightning() == []  # a second warning would be an error here


def test_even_where_warnings_are_errors_no_trainer_breaks(
    setup_module: types.ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    del setup_module._init_profiler
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "deepscope"):
        warnings.simplefilter("error")
        assert lightning.register_lightning() == []
    assert "DeepProfiler" in caplog.text
    caplog.clear()  # It was meant to be said.


def test_where_our_profiler_cannot_be_made_the_name_is_unknown_with_a_warning(
    setup_module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    lightning.register_lightning()

    def import_module(name: str) -> object:
        raise ImportError("Profiler moved")

    monkeypatch.setattr(lightning.importlib, "import_module", import_module)
    with pytest.warns(RuntimeWarning, match="Profiler moved"), pytest.raises(ValueError, match="can only be one of"):
        setup_module._init_profiler(types.SimpleNamespace(), "deep")


def test_loading_the_entry_point_imports_nothing_heavy() -> None:
    code = "import sys, deepscope.lightning; print({'torch', 'lightning', 'numpy', 'wcwidth'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_a_package_that_is_in_use_is_asked_of_nobody(
    setup_module: types.ModuleType, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))  # without a spec, as stand-ins are
    monkeypatch.setitem(sys.modules, package, setup_module)
    assert lightning.DeepProfiler is StandIn
