"""The head of a frozen network is trained; the loss is read once in twenty steps."""

import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(
    nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
    nn.Conv2d(64, 128, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
).eval().requires_grad_(False)  # fmt: skip
head = nn.Linear(128, 20)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
images, labels = torch.randn(512, 3, 64, 64), torch.randint(0, 20, (512,))
for step in range(24):
    rows = torch.randint(0, 512, (64,))
    with torch.no_grad():
        features = body(images[rows])
    loss = nn.functional.cross_entropy(head(features), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
