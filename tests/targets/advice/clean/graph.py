"""A graph network with sparse neighbourhoods."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, edges):
        gathered = torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
        return torch.relu(self.own(x) + self.others(gathered))


torch.manual_seed(0)
nodes, edges = torch.randn(4000, 128), torch.randint(0, 4000, (2, 20_000))
labels = torch.randint(0, 7, (4000,))
layers, head = nn.ModuleList(Layer(128) for _ in range(3)), nn.Linear(128, 7)
optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-3)
for _ in range(24):
    x = nodes
    for layer in layers:
        x = layer(x, edges)
    loss = nn.functional.cross_entropy(head(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
