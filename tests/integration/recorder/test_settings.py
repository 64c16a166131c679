"""What is set in the process stands in the trace, whatever kind of recording it is."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import deepscope
from deepscope.trace.format.process_tables import LoaderSettings, OptimizerSettings, ProcessSettings
from deepscope.trace.read import read_trace


def settings_of(folder: Path) -> ProcessSettings:
    (path,) = folder.glob("*.pt.trace.json.gz")
    found = read_trace(path).header.settings
    assert found is not None
    return found


TENSORS = "torch.utils.data.dataset.TensorDataset"


class Odd(DataLoader):
    """A loader whose settings cannot be asked for."""

    @property
    def pin_memory(self):
        raise RuntimeError("not today")

    @pin_memory.setter
    def pin_memory(self, value):
        pass


def test_loaders_optimizers_and_flags_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        data = TensorDataset(torch.randn(32, 8))
        loader = DataLoader(data, batch_size=8)
        other = DataLoader(data, batch_size=4, num_workers=2, persistent_workers=True, prefetch_factor=3)
        net = nn.Linear(8, 8)
        optimizers = [
            torch.optim.SGD(net.parameters(), lr=0.1, foreach=False),
            torch.optim.AdamW(net.parameters()),
        ]
        with deepscope.profile(tmp_path), torch.autograd.set_detect_anomaly(False):
            for (batch,) in loader:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = net(batch).float().sum()
                loss.backward()
    finally:
        torch.set_float32_matmul_precision(before)
    found = settings_of(tmp_path)
    assert (found.autocast, found.matmul_precision, found.cudnn_benchmark) == ("bfloat16", "high", True)
    assert (found.anomaly, found.deterministic, found.threads) == (False, False, torch.get_num_threads())
    assert LoaderSettings(batch_size=8, dataset=TENSORS) in found.loaders
    expected = LoaderSettings(num_workers=2, batch_size=4, persistent_workers=True, prefetch_factor=3, dataset=TENSORS)
    assert expected in found.loaders
    assert OptimizerSettings("SGD", foreach=False, parameters=2) in [_plain(one) for one in found.optimizers]
    assert OptimizerSettings("AdamW", parameters=2) in [_plain(one) for one in found.optimizers]
    assert found.trainer == {}
    del other, optimizers


def _plain(one: OptimizerSettings) -> OptimizerSettings:
    """Without what some versions of torch say of themselves."""
    return OptimizerSettings(one.name, foreach=one.foreach, parameters=one.parameters)


def test_outside_of_autocast_no_type_is_told(tmp_path):
    net = nn.Linear(8, 8)
    with deepscope.profile(tmp_path):
        net(torch.randn(2, 8))
    assert settings_of(tmp_path).autocast == ""


def test_what_cannot_be_asked_costs_nothing_else(tmp_path):
    odd = Odd(TensorDataset(torch.randn(4, 2)))
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with deepscope.profile(tmp_path):
        net(torch.randn(2, 2)).sum().backward()
    found = settings_of(tmp_path)
    assert any(one.name == "SGD" for one in found.optimizers)
    with pytest.raises(RuntimeError):
        _ = odd.pin_memory
    del optimizer


def test_what_trains_is_told_by_library_and_class(tmp_path, monkeypatch):
    class Trainer:
        """In place of transformers', which is not needed for it."""

    class Accelerator:
        pass

    module, other = ModuleType("transformers.trainer"), ModuleType("accelerate.accelerator")
    module.Trainer, other.Accelerator = Trainer, Accelerator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers.trainer", module)
    monkeypatch.setitem(sys.modules, "accelerate.accelerator", other)
    trainer = type("MyTrainer", (Trainer,), {})()
    trainer.state = SimpleNamespace(num_train_epochs=3)
    with deepscope.profile(tmp_path):
        torch.randn(2)
    assert settings_of(tmp_path).frameworks == ["transformers.Trainer"]
    assert settings_of(tmp_path).epochs == 3
    del trainer


def test_the_living_objects_are_looked_through_once_a_window_in_its_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, foreach=False)
    scans: list[int] = []
    step = 0
    for name in ("get_objects", "get_referrers"):
        scan = getattr(gc, name)
        monkeypatch.setattr(gc, name, lambda *args, scan=scan: [scans.append(step), scan(*args)][1])
    with deepscope.profile(tmp_path, wait=1, warmup=1, active=2, total_steps=6) as prof:
        for step in range(6):  # noqa: B007
            net(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            prof.step()
    assert scans == [0]  # at the end of the step that waits
    found = settings_of(tmp_path)
    assert OptimizerSettings(name="SGD", foreach=False, parameters=2) in found.optimizers
