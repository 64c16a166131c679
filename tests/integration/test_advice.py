"""Advice on real recordings: each mistake of `targets/advice` is found, and a clean training loop has none."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import deepscope
from deepscope.records import Profile
from recorded import TESTS

pytestmark = pytest.mark.thorough

PROGRAMS = TESTS / "targets" / "advice"
RUNNER = TESTS.parent / "benchmarks" / "programs" / "advice.py"
STEPS = 12


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine would tell more than the programs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def recorded(step: Callable[[], None], folder: Path, root: Path, *, audit: bool = False) -> Profile:
    with deepscope.profile(folder, root=root, wait=1, warmup=1, active=STEPS, audit=audit) as recording:
        for _ in range(STEPS + 2 + 3 * audit):
            step()
            recording.step()
    assert recording.profile is not None
    return recording.profile


def program(rule: str, *, mended: bool) -> Callable[[], None]:
    spec = importlib.util.spec_from_file_location(f"advice_{rule}", PROGRAMS / f"{rule.lower()}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[[], None] = module.make(mended)
    return made


@pytest.fixture(autouse=True)
def no_anomaly_detection() -> Iterator[None]:
    """A program's mistake ends with its test."""
    yield
    torch.autograd.set_detect_anomaly(False)


LINES = {
    "DS008": "x = block(x) if self.mended else checkpoint(block, x, use_reentrant=False)",
    "DS009": "optimizer.zero_grad(set_to_none=mended)",
    "DS010": "y = torch.softmax(scores, dim=-1) @ v",
    "DS011": "optimizer.step()",
    "DS017": "loss = model(batch).square().mean()",
    "DS018": "return x + torch.tanh(self.fall(torch.relu(self.rise(x))))",
    "DS019": "print(count, loss, model[0].weight.grad, file=console)",
    "DS022": "torch.autograd.set_detect_anomaly(not mended)",
    "DS033": "features = self.backbone(x)",
    "DS034": "h, c = self.cell(x[:, t], (h, c))",
    "DS035": "bias = torch.cos(distance[..., None] * rates).mean(dim=-1)",
    "DS036": "batch = data[rows]",
    "DS037": "edges = self.edges(features)",
    "DS038": "wanted = self.teacher(x).detach()",
    "DS043": "return (y[:, None] - self.points).square().sum(dim=-1).neg()",
    "DS044": "shown = images if self.mended else images.clone()",
    "DS041": "x = self.words(sentence)",
    "DS040": "shown = self.items(item)",
    "DS013": "mask = torch.tensor([float(number % 7 != 0) for number in range(64 * 256)])",
    "DS045": "loss.backward(retain_graph=True)",
    "DS046": "parts = [head(x) for head in self.heads]",
    "DS047": "return self.edges @ x",
}
"""The line that each program's mistake is found at."""
AUDITED = {"DS033", "DS034", "DS035", "DS036", "DS037", "DS038", "DS040", "DS041", "DS043", "DS044", "DS046", "DS047"}
"""Mistakes that show in steps that are looked at."""


@pytest.mark.parametrize("rule", LINES)
def test_a_mistake_is_found_at_its_line_and_without_it_there_is_nothing_to_find(rule: str, tmp_path: Path):
    bad = recorded(program(rule, mended=False), tmp_path / "bad", PROGRAMS, audit=rule in AUDITED)
    found = next(one for one in bad.findings if one.code == rule)  # the largest saving first
    text = Path(found.file).read_text(encoding="utf-8").splitlines()[found.line - 1]
    assert text.strip() == LINES[rule]
    assert (0 < found.saving_ns < bad.totals.wall_ns) or rule == "DS017"  # which promises nothing
    mended = recorded(program(rule, mended=True), tmp_path / "mended", PROGRAMS, audit=rule in AUDITED)
    assert rule not in {one.code for one in mended.findings}


WITH_OTHERS = {
    "DS015": "dist.all_reduce(one.grad)",
    "DS016": "parallel(batch).square().mean().backward()",
    "DS021": "for (batch,) in loader:",
}
"""Programs that run beside other processes, and so in one of their own."""


@pytest.mark.parametrize("rule", WITH_OTHERS)
def test_what_waits_for_other_processes_is_found_at_its_line_and_not_in_the_mended_program(rule: str, tmp_path: Path):
    bad, mended = (findings_of_program(rule, tmp_path / name, *words) for name, *words in (["bad"], ["m", "--mended"]))
    lines = (PROGRAMS / f"{rule.lower()}.py").read_text(encoding="utf-8").splitlines()
    (line,) = (one["line"] for one in bad if one["code"] == rule)
    assert lines[line - 1].strip() == WITH_OTHERS[rule]
    assert rule not in {one["code"] for one in mended}


def findings_of_program(rule: str, folder: Path, *words: str) -> list[dict[str, Any]]:
    folder.mkdir()
    command = [sys.executable, str(RUNNER), "--rule", rule, "--steps", "12", "--record", *words]
    subprocess.run([*command, "--folder", str(folder)], check=True, capture_output=True, timeout=300)
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text(encoding="utf-8"))["findings"]
    return found


def test_a_clean_training_loop_has_no_findings(tmp_path: Path):
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.LayerNorm(256))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs, targets = torch.randn(256, 256), torch.randn(256, 256)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    assert recorded(step, tmp_path, TESTS).findings == []


def test_more_threads_than_cores_are_found_with_a_number_that_is_free(tmp_path: Path):
    program = PROGRAMS / "mistaken" / "threads.py"
    command = [sys.executable, "-m", "deepscope", "run", "--folder", str(tmp_path), str(program)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (found,) = (one for one in deepscope.load_profile(tmp_path).findings if one.code == "DS039")
    cores = os.cpu_count() or 1
    assert found.evidence["threads"] == 8 * cores
    assert any(f"torch.set_num_threads({free})" in found.remedy.text for free in range(1, cores + 1))
