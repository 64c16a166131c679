"""Device attribution end to end: a real recording with a device grafted on, against sums made without DeepScope."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import deepscope
from deepscope.analysis.build import build_profile
from deepscope.records import Profile
from deepscope.trace.read import read_trace
from graft import Expected, graft
from recorded import TESTS, load


class Block(nn.Module):
    def __init__(self, *, recompute: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)
        self.recompute = recompute

    def body(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.up(self.norm(x))
        return self.down(torch.nn.functional.gelu(hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.recompute:
            return x + checkpoint(self.body, x, use_reentrant=False)
        return x + self.body(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(recompute=True), Block()])

    def fold(self, x: torch.Tensor, depth: int) -> torch.Tensor:
        if depth == 0:
            return x
        return self.fold(x * 1.5, depth - 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.fold(x, 3)


def train(folder: Path) -> Path:
    """Three recorded steps with a checkpointed block, recursion and a gradient of a gradient."""
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    with deepscope.profile(folder, wait=1, warmup=1, active=3, root=TESTS, with_flops=True) as prof:
        for _ in range(5):
            batch = torch.randn(4, 16, requires_grad=True)
            loss = model(batch).square().mean()
            (slope,) = torch.autograd.grad(loss, batch, create_graph=True)
            (loss + slope.square().sum()).backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    (path,) = sorted(folder.rglob("*.json*"))
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return train(tmp_path_factory.mktemp("graft"))


@pytest.fixture(scope="module", params=[True, False], ids=["engine-thread", "calling-thread"])
def grafted(request: pytest.FixtureRequest, recording: Path) -> tuple[Expected, Profile]:
    document = load(recording)
    expected = graft(document, engine_thread=request.param)
    path = recording.with_name(f"grafted-{request.param}.json")
    path.write_text(json.dumps(document))
    return expected, build_profile(read_trace(path))


def by_line(profile: Profile, name: str) -> dict[tuple[str, int], int]:
    return {(line.file, line.line): value for line in profile.lines if (value := getattr(line, name))}


def known(sums: dict[tuple[str, int] | None, int]) -> dict[tuple[str, int], int]:
    return {line: value for line, value in sums.items() if line is not None}


def test_every_kernel_is_counted(grafted):
    expected, profile = grafted
    assert expected.kernels > 500
    assert (profile.metric, profile.totals.device_ns, profile.totals.launches) == (
        "device",
        expected.device_ns,
        expected.kernels,
    )


def test_self_device_time_of_every_line(grafted):
    expected, profile = grafted
    assert by_line(profile, "self_device_ns") == known(expected.self_ns)
    assert profile.no_line.self_device_ns == expected.self_ns.get(None, 0)


def test_backward_device_time_of_every_line(grafted):
    expected, profile = grafted
    assert len(known(expected.backward_ns)) > 5
    assert by_line(profile, "backward_device_ns") == known(expected.backward_ns)


def test_total_device_time_of_every_line(grafted):
    expected, profile = grafted
    assert by_line(profile, "total_device_ns") == dict(expected.total_ns)


def test_nearly_all_work_of_a_training_run_reaches_a_line(grafted):
    _, profile = grafted
    assert profile.resolved.line_ns > 0.99 * profile.totals.device_ns
    assert profile.resolved.function_ns == 0
