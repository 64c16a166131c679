"""Gradients of four small batches are summed for one step of the optimizer."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
features, labels = torch.randn(8192, 256), torch.randint(0, 10, (8192,))
for _step in range(24):
    for _part in range(4):
        rows = torch.randint(0, 8192, (128,))
        loss = nn.functional.cross_entropy(model(features[rows]), labels[rows]) / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
