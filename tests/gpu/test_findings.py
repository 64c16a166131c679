"""On a CUDA device: advice that only a device can show, and the same program without the mistake."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import deepscope
from deepscope.records import Finding
from gpu.recorded import line_of

pytestmark = pytest.mark.gpu

HERE = Path(__file__)
STEPS = 4


def findings(folder: Path, step: Callable[[int], Any]) -> list[Finding]:
    step(0)
    torch.cuda.synchronize()
    with deepscope.profile(folder, wait=1, warmup=1, active=STEPS) as recording:
        for number in range(STEPS + 3):
            step(number + 1)
            recording.step()
    assert recording.profile is not None
    return recording.profile.findings


@pytest.mark.parametrize(("tries", "changes"), [(True, True), (True, False), (False, True)])
def test_shapes_that_change_make_cudnn_search_in_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tries: bool, changes: bool
) -> None:
    if not torch.backends.cudnn.is_available():
        pytest.skip(f"torch {torch.__version__} has no cuDNN here")
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", tries)
    net = nn.Sequential(nn.Conv2d(8, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3)).cuda()

    def step(number: int) -> None:
        size = 64 + 2 * number if changes else 64
        net(torch.randn(8, 8, size, size, device="cuda")).sum().backward()  # @convolutions

    found = [one for one in findings(tmp_path, step) if one.code == "DS023"]
    assert bool(found) == (tries and changes), found
    for one in found:
        assert one.line == line_of(HERE, "convolutions")
        assert int(one.evidence["searches"]) >= STEPS


@pytest.mark.parametrize("checks", [True, False])
def test_a_check_of_the_norm_waits_for_the_device(tmp_path: Path, checks: bool) -> None:
    weights = [(torch.randn(4096, 4096, device="cuda") / 64).requires_grad_() for _ in range(8)]
    x = torch.randn(4096, 4096, device="cuda")

    def step(_number: int) -> None:
        y = x
        for weight in weights:
            y = torch.tanh(y @ weight)
        y.sum().backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=checks)  # @clips
        time.sleep(0.003)  # while the device has nothing left to do

    found = [one for one in findings(tmp_path, step) if one.code == "DS024"]
    assert bool(found) == checks, found
    for one in found:
        assert one.line == line_of(HERE, "clips")
        assert int(one.evidence["waits"]) == STEPS
