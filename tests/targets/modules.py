"""Modules: Sequential, nested modules of one's own, all kinds of hooks, modules made on the fly."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.weight


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), Scale(), nn.ReLU(), nn.Sequential(Scale(), nn.LayerNorm(4)))
        self.heads = nn.ModuleList([nn.Linear(4, 2) for _ in range(2)])

    def forward(self, x):
        x = self.body(x)
        outs = [head(x) for head in self.heads]
        return torch.cat(
            outs,
            dim=1,
        )


def before(module, args):
    (x,) = args
    return (x + 1,)


def after(module, args, output):
    return output * 0.5


def on_gradient(grad):
    scaled = grad * 2
    return scaled / 2


def on_module_backward(module, grad_input, grad_output):
    return tuple(g if g is None else g * 1.0 for g in grad_input)


def main(in_thread=None):
    torch.manual_seed(0)
    net = Net()
    net.body[1].register_forward_pre_hook(before)
    net.heads[0].register_forward_hook(after)
    net.body[3].register_full_backward_hook(on_module_backward)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        x = torch.randn(5, 4)
        out = net(x)
        out.register_hook(on_gradient)
        out.register_hook(lambda grad: grad + 0)
        loss = nn.CrossEntropyLoss()(out, torch.zeros(5, dtype=torch.long))
        loss.backward()
        optimizer.step()
