"""A model of one layer with all of Lightning's loops, for either import name, and the traces that a run leaves."""

import gzip
import importlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

PACKAGES = ("lightning.pytorch", "pytorch_lightning")

QUIET = {
    "accelerator": "cpu",
    "devices": 1,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class Vectors(Dataset):
    def __init__(self, count: int) -> None:
        self.rows = torch.linspace(-1, 1, count * 8).view(count, 8)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


class Stream(IterableDataset):
    """Batches of unknown number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        return iter(torch.ones(self.count, 8))


def make_model(package: str = "lightning.pytorch", **hooks: Any) -> Any:
    """A LightningModule of that package; `hooks` are methods in place of its own."""
    pl = importlib.import_module(package)

    class Net(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def forward(self, x):
            return self.layer(x)

        def training_step(self, batch, batch_idx):
            return self(batch).square().mean()

        def validation_step(self, batch, batch_idx):
            self(batch)

        def test_step(self, batch, batch_idx):
            self(batch)

        def predict_step(self, batch, batch_idx):
            return self(batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return type("Net", (Net,), hooks)()


def loader(batches: int = 64) -> DataLoader:
    return DataLoader(Vectors(batches), batch_size=1)


class Recorded(NamedTuple):
    """One trace file, as far as these tests ask."""

    path: Path
    deepscope: dict[str, Any]
    steps: list[tuple[float, float]]
    """Start and end of each `ProfilerStep`, µs."""
    annotations: list[tuple[str, float, float]]

    @property
    def stage(self) -> str:
        return self.path.name.split(".")[-7]

    @property
    def rank(self) -> str:
        return self.path.name.split(".")[-6]

    def within_steps(self, name: str) -> list[int]:
        """How many annotations ending in `name` start in each step."""
        starts = [start for found, start, _ in self.annotations if found.endswith(name)]
        return [sum(first <= start < last for start in starts) for first, last in self.steps]


def read(path: Path) -> Recorded:
    content = path.read_bytes()
    content = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    spans = [
        (event["name"], float(event["ts"]), float(event["ts"]) + float(event["dur"]))
        for event in content["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") == "user_annotation"
    ]
    spans.sort(key=lambda span: span[1])
    steps = [(start, end) for name, start, end in spans if name.startswith("ProfilerStep#")]
    return Recorded(path, content.get("deepscope", {}), steps, [span for span in spans if span[0].startswith("[pl]")])


def recorded(folder: Path) -> list[Recorded]:
    """The traces below a folder, oldest first."""
    files = sorted(folder.rglob("*.pt.trace.json.gz"), key=lambda path: path.name.split(".")[-5])
    return [read(file) for file in files]


def stages(folder: Path) -> list[str]:
    return [one.stage for one in recorded(folder)]


def trainer(package: str = "lightning.pytorch", **options):
    """A Trainer under `profiler="deep"` that prints and logs nothing."""
    return importlib.import_module(package).Trainer(**(QUIET | {"profiler": "deep", "logger": False} | options))


QUIET_MARKS = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:You defined a .validation_step. but have no:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*is smaller than the logging interval:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Starting from v1.9.0, `tensorboardX` has been removed:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*`isinstance.treespec, LeafSpec.` is deprecated"),
    pytest.mark.filterwarnings("ignore:.*exists and is not empty:UserWarning"),
]
"""For `pytestmark`: what Lightning warns of in runs as short as these."""
