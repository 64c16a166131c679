"""A variational autoencoder."""

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 2 * 32))
        self.decode = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 784))

    def forward(self, x):
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decode(code), mean, log_variance


torch.manual_seed(0)
pictures = torch.rand(4096, 784)
model = Autoencoder()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(24):
    batch = pictures[torch.randint(0, 4096, (256,))]
    out, mean, log_variance = model(batch)
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    loss = nn.functional.binary_cross_entropy_with_logits(out, batch, reduction="sum") + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
