"""Inference without steps, recorded by torch alone with the operators' call stacks."""

import sys
from pathlib import Path

import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.features(x)
        return self.head(x.amax(dim=-1)).softmax(dim=-1)


@torch.inference_mode()
def predict(model, batches):
    return [int(model(batch).argmax()) for batch in batches]


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Classifier().eval()
    batches = torch.randn(6, 1, 4, 32)
    predict(model, batches)
    verbose = _ExperimentalConfig(verbose=True)
    with torch.profiler.profile(with_stack=True, record_shapes=True, experimental_config=verbose) as profiler:
        predict(model, batches)
    profiler.export_chrome_trace(str(Path(sys.argv[1], "inference.pt.trace.json")))
