"""Metric learning on pairwise distances."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
points, labels = torch.randn(8192, 128), torch.randint(0, 10, (8192,))
for _ in range(24):
    rows = torch.randint(0, 8192, (512,))
    embedded = nn.functional.normalize(net(points[rows]), dim=1)
    far = torch.cdist(embedded, embedded)
    same = labels[rows, None] == labels[rows]
    loss = far[same].mean() + (1 - far[~same]).clamp(min=0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
