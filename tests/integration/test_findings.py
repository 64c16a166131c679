"""Findings of real recordings on the CPU, and of the same steps without the mistakes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import deepscope
from deepscope.records import Finding, Profile
from deepscope.report.run_verdict import run_verdict
from recorded import TESTS

STEPS = 3
FEATURES = 1024


class Numbers(Dataset[Any]):
    def __init__(self, work: int) -> None:
        self.work = work

    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> torch.Tensor:
        total = sum(range(self.work))
        return torch.full((FEATURES,), float(total % 7))


def sum_one_by_one(values: torch.Tensor) -> float:
    total = 0.0
    for value in values:
        total += value.item()
    return total


def record(folder: Path, *, work: int, scalars: int, size: int) -> Profile:
    weight = torch.randn(size, size)
    whole = {"max_slowdown": float("inf")}  # on a busy machine detail would give way
    with deepscope.profile(folder, root=TESTS, wait=0, warmup=0, active=STEPS, **whole) as recording:
        for batch in recording.iterate(DataLoader(Numbers(work), batch_size=4)):
            (weight @ weight).sum()
            sum_one_by_one(batch.flatten()[:scalars])
    profile = recording.profile
    assert profile is not None
    return profile


def at(profile: Profile, code: str) -> list[Finding]:
    return [finding for finding in profile.findings if finding.code == code]


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return record(tmp_path_factory.mktemp("careless"), work=100_000, scalars=3000, size=8)


def test_a_loop_over_scalars_is_found_at_its_line(careless: Profile):
    (found,) = at(careless, "DS007")
    text = Path(found.file).read_text(encoding="utf-8").splitlines()[found.line - 1]
    assert text.strip() == "total += value.item()"
    assert found.evidence["operators"] == STEPS * 3000
    assert 0 < found.saving_ns < careless.totals.wall_ns


def test_a_slow_data_set_is_found_at_its_line(careless: Profile):
    (found,) = at(careless, "DS003")
    text = Path(found.file).read_text(encoding="utf-8").splitlines()[found.line - 1]
    assert text.strip() == "total = sum(range(self.work))"
    assert found.evidence["batches"] >= STEPS


def test_steps_that_only_multiply_have_no_tiny_operators(tmp_path: Path):
    # What else is found goes by time, and a busy machine may hold up anything: the rules' own tests say when they fire.
    findings = record(tmp_path, work=1, scalars=2, size=1024).findings
    assert "DS007" not in {found.code for found in findings}


def test_a_library_module_that_one_line_calls_is_no_loop(tmp_path: Path) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
    with deepscope.profile(tmp_path / "steps", root=TESTS, active=STEPS) as steps:
        for _ in range(STEPS):
            net(torch.randn(2, 4, 16)).sum().backward()
            steps.step()
    with deepscope.profile(tmp_path / "bare", root=TESTS) as bare: net(torch.randn(2, 4, 16))  # fmt: skip  # noqa: E701
    for recording in (steps, bare):
        assert recording.profile is not None
        assert max(line.operators for line in recording.profile.lines) > 200
        assert at(recording.profile, "DS007") == []


PART = bytes(1 << 20)
LARGE = bytes(10 << 20)


class Digests(Dataset[Any]):
    """Loading that is divided among lines, none of which takes as long as the one line of training does."""

    def __len__(self) -> int:
        return 8 * (STEPS + 3)

    def __getitem__(self, index: int) -> torch.Tensor:
        found = [hashlib.sha256(PART).digest()[0]]
        found += [hashlib.sha256(PART).digest()[1]]
        found += [hashlib.sha256(PART).digest()[2]]
        found += [hashlib.sha256(PART).digest()[3]]
        found += [hashlib.sha256(PART).digest()[4]]
        found += [hashlib.sha256(PART).digest()[5]]
        return torch.tensor(found)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_verdict_names_the_line_that_loads_as_the_advice_does(tmp_path: Path, workers: int) -> None:
    loader = DataLoader(Digests(), batch_size=8, num_workers=workers)
    # Workers start before the window.
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=STEPS) as recording:
        for batch in recording.iterate(loader):
            (batch.float() * hashlib.sha256(PART if workers else LARGE).digest()[0]).sum()
    profile = recording.profile
    assert profile is not None
    for line in profile.lines:
        line.slowed = False  # on a busy machine nothing is concluded
    said = run_verdict(profile)
    assert said.cause == "data", said
    text = Path(said.file).read_text(encoding="utf-8").splitlines()[said.line - 1].strip()
    assert text.startswith("for batch in" if workers else "found "), said
    assert all((one.file, one.line) == (said.file, said.line) for one in at(profile, "DS003"))
