"""DS003: each sample is a row that is taken out of a DataFrame."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.features = [name for name in frame.columns if name != "label"]

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        row = self.frame.iloc[index]
        values = row[self.features].to_numpy(dtype=np.float32)
        return torch.from_numpy(values), torch.tensor(row["label"], dtype=torch.float32)


generator = np.random.default_rng(0)
frame = pd.DataFrame(generator.normal(size=(4000, 24)), columns=[f"x{number}" for number in range(24)])
frame["label"] = (frame["x0"] + frame["x1"] > 0).astype(np.float32)
model = nn.Sequential(nn.Linear(24, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features, labels in DataLoader(Rows(frame), batch_size=128, shuffle=True):
    loss = nn.functional.binary_cross_entropy_with_logits(model(features).squeeze(1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
