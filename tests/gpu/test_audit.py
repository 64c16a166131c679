"""On a CUDA device: an audit sees backward passes on autograd's own threads, and changes nothing of the results."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import deepscope
from audited_programs import PROGRAMS, looked_at_all
from gpu.recorded import line_of

pytestmark = pytest.mark.gpu

HERE = Path(__file__)
AROUND = 2


def state_of(name: str, *, with_audit: bool) -> list[torch.Tensor]:
    torch.manual_seed(7)
    with torch.device("cuda"):
        program = PROGRAMS[name]()
        if with_audit:
            looked_at_all(program.step)
        else:
            for _ in range(3):
                program.step()
        for _ in range(AROUND):
            program.step()
    return [one for module in program.modules for one in module.state_dict().values()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_audit_leaves_results_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    plain, audited = state_of(name, with_audit=False), state_of(name, with_audit=True)
    for one, other in zip(plain, audited, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_that_nobody_uses_stand_at_the_call_of_their_layers(tmp_path: Path):
    frozen = nn.Sequential(*(nn.Linear(512, 512) for _ in range(4))).cuda()
    head = nn.Linear(512, 8).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
    x = torch.randn(2048, 512, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        features = frozen(x)  # @features
        head(features).square().mean().backward()
        optimizer.step()

    with deepscope.profile(tmp_path, wait=1, warmup=1, active=3, audit=True) as recording:
        for _ in range(9):
            step()
            recording.step()
    assert recording.profile is not None
    assert recording.profile.audit is not None
    assert recording.profile.audit.left_out == ""
    (found,) = [one for one in recording.profile.findings if one.code == "DS033"]
    assert found.line == line_of(HERE, "features")
