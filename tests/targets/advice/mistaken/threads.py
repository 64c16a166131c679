"""DS039: each operator runs on many more threads than there are cores."""

import os

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(8 * (os.cpu_count() or 1))
model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.GELU())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(24):
    loss = model(torch.randn(256, 256)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
