"""DS013: a mask is made of numbers by Python in every step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(24):
    x = torch.randn(128, 256)
    mask = torch.tensor([float(number % 7 != 0) for number in range(128 * 256)]).view(128, 256)
    loss = (model(x * mask) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
