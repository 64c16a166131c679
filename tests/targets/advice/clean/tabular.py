"""A table in memory, in a TensorDataset that the loader takes whole batches from."""

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
table = TensorDataset(torch.randn(20_000, 64), torch.randn(20_000, 1))
batches = BatchSampler(RandomSampler(table), batch_size=512, drop_last=True)
loader = DataLoader(table, sampler=batches, batch_size=None)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
for features, target in loader:
    loss = nn.functional.mse_loss(model(features), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
