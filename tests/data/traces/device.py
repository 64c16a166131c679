"""Training on a CUDA device as users write it: pageable copies, autocast, a compiled head, values read in a step."""

import sys

import torch
from torch import nn

import deepscope

STEPS = 12


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        query, key, value = self.mix(self.norm(x)).chunk(3, dim=-1)
        scores = query @ key.transpose(-2, -1) / x.shape[-1] ** 0.5
        return x + self.out(scores.softmax(dim=-1) @ value)


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fall = nn.Linear(width, 8)

    def forward(self, x):
        x = x * torch.sigmoid(x)
        return self.fall(x.mean(dim=1))


class Net(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.head = torch.compile(Head(width))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train_step(net, optimizer, data, target):
    batch = data.to("cuda")
    target = target.to("cuda", non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = net(batch)
    loss = nn.functional.cross_entropy(logits.float(), target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    right = (logits.argmax(dim=-1) == target).cpu()
    return loss.item(), int(right.sum())


if __name__ == "__main__":
    torch.manual_seed(0)
    recording = deepscope.profile(sys.argv[1], wait=7, warmup=1, active=2)  # before it compiles
    net = Net().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    with recording:
        for _ in range(STEPS):
            data, target = torch.randn(16, 256, 512), torch.randint(8, (16,)).pin_memory()
            train_step(net, optimizer, data, target)
            recording.step()
