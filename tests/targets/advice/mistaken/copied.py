"""DS013: a copy of the whole model is made in each step, for a moving average of its weights."""

import copy

import torch
from torch import nn

model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(24)), nn.Linear(64, 1))
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    loss = model(torch.randn(64, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    before = copy.deepcopy(average)
    with torch.no_grad():
        for old, new, target in zip(before.parameters(), model.parameters(), average.parameters()):
            target.copy_(0.99 * old + 0.01 * new)
