"""Trains a small model with Lightning in a process of its own; the options stand on the command line as JSON."""

import json
import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main():
    torch.set_num_threads(1)
    options = json.loads(sys.argv[1])
    if "deep" in options:
        from deepscope.lightning import DeepProfiler

        options["profiler"] = DeepProfiler(**options.pop("deep"))
    trainer = Trainer(
        accelerator="cpu",
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        **options,
    )
    trainer.fit(Net(), DataLoader(torch.ones(32, 8), batch_size=2))


if __name__ == "__main__":
    main()
