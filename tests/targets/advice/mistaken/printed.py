"""DS019: every step writes pages to the log."""

import logging

import torch
from torch import nn

logging.basicConfig(filename="train.log", level=logging.INFO)
log = logging.getLogger(__name__)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(24):
    x = torch.randn(64, 128)
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    log.info("step %d weights %s", step, model[0].weight.tolist())
    optimizer.step()
