"""DS008: everything is computed again though memory is plenty."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4))
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
for _ in range(16):
    x = torch.randn(128, 256)
    for layer in layers:
        x = x + checkpoint(layer, x, use_reentrant=False)
    loss = x.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
