"""A policy gradient on many environments that step as one tensor."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(16, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
turn = torch.randn(4, 16, 16) / 4
state = torch.randn(512, 16)
for _ in range(24):
    chosen, rewards = [], []
    for _ in range(8):
        odds = torch.distributions.Categorical(logits=policy(state), validate_args=False)
        action = odds.sample()
        chosen.append(odds.log_prob(action))
        state = torch.tanh(torch.einsum("bi,bij->bj", state, turn[action]) + 0.1 * torch.randn(512, 16))
        rewards.append(-state.pow(2).sum(1))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(chosen) * (returns - returns.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
