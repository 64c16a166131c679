"""DS013: a batch goes through lists of numbers on its way to a tensor."""

import numpy as np
import torch
from torch import nn

generator = np.random.default_rng(0)
memory = [generator.normal(size=64).tolist() for _ in range(5000)]
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    rows = generator.integers(len(memory), size=512)
    states = [memory[row] for row in rows]
    batch = torch.tensor(states, dtype=torch.float32)
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
