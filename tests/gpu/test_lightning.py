"""On a CUDA device: Lightning's Trainer with DeepScope as its profiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from gpu.recorded import line_of, recorded, total_ns

pytestmark = [
    pytest.mark.gpu,
    # Lightning's own advice, on its loaders, loggers and devices.
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
]

HERE = Path(__file__)
SIZE = 256


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(SIZE, SIZE)

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        y = self.layer(batch[0])  # @layer
        y = torch.tanh(y)  # @tanh
        return y.square().mean()  # @loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def fit(profiler: Any, folder: Path) -> pl.Trainer:
    loader = DataLoader(TensorDataset(torch.randn(8 * 64, SIZE)), batch_size=64)
    trainer = pl.Trainer(
        default_root_dir=folder,
        accelerator="gpu",
        devices=1,
        max_epochs=1,
        profiler=profiler,
        logger=CSVLogger(folder),
        log_every_n_steps=1,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Net(), loader)
    return trainer


def test_lightning_work_stands_at_the_lines_of_training_step(tmp_path: Path) -> None:
    from deepscope.lightning import DeepProfiler

    profiler = DeepProfiler(dirpath=tmp_path, wait=1, warmup=1, active=3)
    fit(profiler, tmp_path)
    found = recorded(profiler, HERE)
    tanh = found.at("tanh")
    backward = found.work_under("autograd::engine::evaluate_function: TanhBackward0")
    assert tanh.backward_device_ns == total_ns(backward), found.describe_lines()
    assert tanh.self_device_ns == tanh.backward_device_ns + total_ns(found.work_under("aten::tanh"))
    assert found.at("layer").self_device_ns >= total_ns(found.work_under("aten::linear"))
    assert found.profile.totals.steps == 3


def test_trainer_with_profiler_deep_prints_the_hot_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from deepscope.lightning import DeepProfiler

    trainer = fit("deep", tmp_path)
    assert isinstance(trainer.profiler, DeepProfiler)
    summary = trainer.profiler.summary()
    for mark in ("layer", "tanh", "loss"):
        assert f"{HERE.name}:{line_of(HERE, mark)}" in summary
    assert "backward" in summary
    assert list(tmp_path.rglob("*.pt.trace.json.gz"))
    assert "pt.trace.json" in "".join(capsys.readouterr()), "the path of the trace is printed"
