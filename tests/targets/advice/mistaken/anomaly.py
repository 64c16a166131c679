"""DS022: anomaly detection was left on."""

import torch
from torch import nn

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(128, 128), nn.GELU())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(24):
    loss = model(torch.randn(64, 128)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
