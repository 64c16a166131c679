"""DS013: a statistic of all gradients is taken by NumPy in every step."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for _ in range(24):
    x = torch.randn(128, 256)
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    gradients = torch.cat([one.grad.flatten() for one in model.parameters()]).numpy()
    history.append(np.percentile(gradients, [1, 50, 99]))
    optimizer.step()
