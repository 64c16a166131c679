"""DS003: each sample is parsed from a line of JSON."""

import json
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        record = json.loads(self.lines[index])
        return torch.FloatTensor(record["values"]), record["label"]


random.seed(0)
lines = [json.dumps({"values": [random.random() for _ in range(512)], "label": n % 10}) for n in range(2000)]
model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for values, labels in DataLoader(Records(lines), batch_size=64, shuffle=True):
    loss = nn.functional.cross_entropy(model(values), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
