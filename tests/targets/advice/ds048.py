"""Checks of distributions (DS048): a Gaussian policy plays 32 turns a step, and torch checks each of its distributions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.distributions import Independent, Normal


class Policy(nn.Module):
    """What to do in each of many environments, as a distribution."""

    def __init__(self, checks: bool | None) -> None:
        super().__init__()
        self.checks = checks
        self.body = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 8))

    def forward(self, state: torch.Tensor) -> Independent:
        mean, scale = self.body(state).chunk(2, -1)
        scale = torch.nn.functional.softplus(scale) + 0.1
        return Independent(Normal(mean, scale, validate_args=self.checks), 1, validate_args=self.checks)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` has no arguments checked."""
    policy = Policy(checks=False if mended else None)
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
    turn = torch.randn(4, 12) / 4
    start = torch.randn(64, 12)

    def step() -> None:
        state, chances, rewards = start, [], []
        for _ in range(32):
            moves = policy(state)
            action = moves.sample()
            chances.append(moves.log_prob(action))
            state = torch.tanh(state + action @ turn)
            rewards.append(-state.square().sum(1))
        returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        optimizer.zero_grad()
        (-torch.stack(chances) * (returns - returns.mean())).mean().backward()
        optimizer.step()

    return step
