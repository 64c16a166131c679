"""Segmentation with skip connections, in channels-last, validated once."""

import torch
from torch import nn


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = block(3, 32), block(32, 64), block(96, 32)
        self.head = nn.Conv2d(32, 5, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.second(nn.functional.max_pool2d(a, 2))
        return self.head(self.last(torch.cat((a, nn.functional.interpolate(b, scale_factor=2)), 1)))


torch.manual_seed(0)
model = Net().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
images = torch.randn(64, 3, 64, 64).to(memory_format=torch.channels_last)
masks = torch.randint(0, 5, (64, 64, 64))
for _ in range(16):
    rows = torch.randint(0, 64, (8,))
    loss = nn.functional.cross_entropy(model(images[rows]), masks[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
