"""DS007: boxes are compared in pairs, each with a dozen operators on four numbers."""

import torch
from torch import nn


def box_iou(a, b):
    left, top = torch.max(a[0], b[0]), torch.max(a[1], b[1])
    right, bottom = torch.min(a[2], b[2]), torch.min(a[3], b[3])
    inside = (right - left).clamp(min=0) * (bottom - top).clamp(min=0)
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return inside / (area - inside)


def matched(boxes, truths):
    best = []
    for box in boxes:
        for truth in truths:
            best.append(box_iou(box, truth))
    return torch.stack(best).view(len(boxes), len(truths)).amax(1)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 24 * 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(16):
    loss = model(torch.randn(32, 64)).pow(2).mean()
    boxes = torch.rand(24, 4) + torch.tensor([0.0, 0.0, 1.0, 1.0])
    loss = loss * (1 - matched(boxes, boxes[:12])).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
