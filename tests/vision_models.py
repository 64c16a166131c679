"""ResNets and ViT-B/16 as their papers have them, so that published figures can be held against what is counted."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["ResNet", "VisionTransformer"]


def _joined(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class _Residual(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int, expansion: int) -> None:
        super().__init__()
        outputs = width * expansion
        if expansion == 1:
            parts = [_joined(inputs, width, 3, stride), nn.ReLU(), _joined(width, width, 3)]
        else:
            first, second = _joined(inputs, width, 1), _joined(width, width, 3, stride)
            parts = [first, nn.ReLU(), second, nn.ReLU(), _joined(width, outputs, 1)]
        self.body = nn.Sequential(*parts)
        self.shortcut = _joined(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Sequential):
    """https://arxiv.org/abs/1512.03385, the stride of bottlenecks in their middle, as torchvision has it."""

    def __init__(self, depths: tuple[int, ...], expansion: int) -> None:
        blocks: list[nn.Module] = []
        inputs = 64
        for stage, depth in enumerate(depths):
            width = 64 << stage
            for place in range(depth):
                blocks.append(_Residual(inputs, width, 2 if stage and not place else 1, expansion))
                inputs = width * expansion
        super().__init__(
            _joined(3, 64, 7, 2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            *blocks,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(inputs, 1000),
        )


class _Encoder(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        split = self.inputs(self.before(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = (query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5).softmax(-1)
        x = x + self.output((scores @ value).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.behind(x))


class VisionTransformer(nn.Module):
    """ViT-B/16, https://arxiv.org/abs/2010.11929."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, 768))
        self.places = nn.Parameter(torch.zeros(1, 197, 768))
        self.encoder = nn.Sequential(*(_Encoder(768, 12) for _ in range(12)), nn.LayerNorm(768))
        self.head = nn.Linear(768, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), patches], 1) + self.places
        return self.head(self.encoder(tokens)[:, 0])
