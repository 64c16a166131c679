"""On a CUDA device: each program with a mistake has its finding at the line; the mended one has none there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.records import Finding
from gpu.recorded import line_of

pytestmark = pytest.mark.gpu

PROGRAMS = Path(__file__).resolve().parents[1] / "targets" / "advice" / "device"
STEPS = 8


def findings(path: Path, folder: Path, *, mended: bool) -> list[Finding]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    precision = torch.get_float32_matmul_precision()
    try:
        with torch.device("cuda"):
            step = module.make(mended)
            for _ in range(3):
                step()
            audit = getattr(module, "AUDITED", False)
            with deepscope.profile(folder, root=PROGRAMS, wait=6, warmup=1, active=STEPS, audit=audit) as recording:
                for _ in range(7 + STEPS + 3 * audit):
                    step()
                    recording.step()
    finally:
        torch.set_float32_matmul_precision(precision)
    assert recording.profile is not None
    return [one for one in recording.profile.findings if one.code == path.stem.upper()]


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("ds*.py")), ids=lambda path: path.stem.upper())
def test_a_mistake_is_found_at_its_line_and_mended_it_is_not(path: Path, tmp_path: Path):
    line = line_of(path, "mistake")
    found = findings(path, tmp_path / "bad", mended=False)
    assert line in [one.line for one in found], found
    assert line not in [one.line for one in findings(path, tmp_path / "mended", mended=True)]
