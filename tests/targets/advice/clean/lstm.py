"""A recurrent network that forecasts a series."""

import torch
from torch import nn


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


torch.manual_seed(0)
series = torch.randn(10_000, 8).cumsum(0)
model = Forecast()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
windows = series.unfold(0, 65, 1).transpose(1, 2)
for _ in range(20):
    batch = windows[torch.randint(0, len(windows), (64,))]
    loss = nn.functional.mse_loss(model(batch[:, :-1]), batch[:, -1, :1])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
