"""A compiled training step, recorded with the lines that its kernels are fused from."""

import sys

import torch
import torch._inductor.config as inductor
from torch import nn

import deepscope

inductor.cpp.enable_kernel_profile = True  # else inductor's kernels leave no events on the CPU


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 64)
        self.second = nn.Linear(64, 4)

    def forward(self, x):
        x = self.first(x)
        x = x * torch.sigmoid(x)
        x = (x - x.mean(dim=-1, keepdim=True)) / (x.std(dim=-1, keepdim=True) + 1e-5)
        return self.second(x)


def loss_of(net, batch):
    out = net(batch)
    return out.logsumexp(dim=-1).mean()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    recording = deepscope.profile(sys.argv[1], wait=0, warmup=1, active=3, record_shapes=True)  # before it compiles
    net = torch.compile(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with recording:
        for _ in range(4):
            loss_of(net, torch.randn(32, 16)).backward()
            optimizer.step()
            optimizer.zero_grad()
            recording.step()
