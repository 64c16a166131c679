"""DS011: Adam steps through hundreds of small parameters one after the other."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*(layer for _ in range(60) for layer in (nn.Linear(32, 32), nn.LayerNorm(32), nn.ReLU())))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(24):
    loss = model(torch.randn(16, 32)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
