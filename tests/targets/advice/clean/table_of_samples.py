"""A table in memory, in a TensorDataset as most programs use it: sample by sample."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = TensorDataset(torch.randn(8_000, 64), torch.randint(0, 4, (8_000,)))
loader = DataLoader(table, batch_size=256, shuffle=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features, target in loader:
    loss = nn.functional.cross_entropy(model(features), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
