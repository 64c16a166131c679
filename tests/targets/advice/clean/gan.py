"""A generator and a discriminator, each with an optimizer of its own."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(
    nn.ConvTranspose2d(64, 64, 7), nn.BatchNorm2d(64), nn.ReLU(),
    nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1), nn.Tanh(),
)  # fmt: skip
discriminator = nn.Sequential(
    nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
    nn.Conv2d(32, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 49, 1),
)  # fmt: skip
of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
pictures = torch.rand(1024, 1, 28, 28) * 2 - 1
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for _step in range(24):
    real = pictures[torch.randint(0, 1024, (32,))]
    fake = generator(torch.randn(32, 64, 1, 1))
    loss = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    of_discriminator.zero_grad()
    loss.backward()
    of_discriminator.step()
    loss = criterion(discriminator(fake), ones)
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
