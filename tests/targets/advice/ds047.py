"""A cheaper operator would do (DS047): a graph's layers multiply with a matrix that is mostly zeros."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""
NODES = 1500


def edges() -> torch.Tensor:
    """The normalized matrix of a graph with about six edges a node; shape (nodes, nodes)."""
    generator = torch.Generator().manual_seed(0)
    dense = (torch.rand(NODES, NODES, generator=generator) < 6 / NODES).float() + torch.eye(NODES)
    return dense / dense.sum(1, keepdim=True)


class Graph(nn.Module):
    """Layers that give each node the mean of those around it."""

    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.edges = matrix
        self.layers = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])

    def spread(self, x: torch.Tensor) -> torch.Tensor:
        return self.edges @ x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(self.spread(x)))
        return x


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` keeps the matrix sparse."""
    matrix = edges()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Sparse CSR tensor support is in beta state"
        model = Graph(matrix.to_sparse_csr() if mended else matrix)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features = torch.randn(NODES, 64, generator=torch.Generator().manual_seed(1))

    def step() -> None:
        optimizer.zero_grad()
        model(features).square().mean().backward()
        optimizer.step()

    return step
