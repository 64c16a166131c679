"""On a CUDA device: copies stand at their lines with their bytes and their direction."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gpu.recorded import Recorded, Span, record, total_ns

pytestmark = pytest.mark.gpu

COUNT = 1 << 20
BYTES = 4 * COUNT


def copies(found: Recorded, direction: str) -> list[Span]:
    return [span for span in found.work if span.category == "gpu_memcpy" and direction in span.name]


def test_copies_from_the_host_have_bytes_and_only_pageable_ones_wait(tmp_path: Path) -> None:
    pageable = torch.ones(COUNT)
    pinned = torch.ones(COUNT).pin_memory()

    def code() -> None:
        pageable.to("cuda")  # @pageable
        pinned.to("cuda", non_blocking=True)  # @pinned

    found = record(code, tmp_path)
    moved = copies(found, "HtoD")
    assert found.at("pageable").h2d_bytes == BYTES, found.describe_lines()
    assert found.at("pinned").h2d_bytes == BYTES
    assert found.at("pageable").h2d_ns + found.at("pinned").h2d_ns == total_ns(moved)
    assert found.at("pageable").wait_ns > 0
    assert found.at("pinned").wait_ns == 0


def test_copies_to_the_host_have_bytes(tmp_path: Path) -> None:
    x = torch.ones(COUNT, device="cuda")

    def code() -> None:
        x.cpu()  # @to_host

    found = record(code, tmp_path)
    line = found.at("to_host")
    assert (line.d2h_bytes, line.h2d_bytes, line.d2d_bytes) == (BYTES, 0, 0)
    assert line.d2h_ns == total_ns(copies(found, "DtoH")) == line.self_device_ns


def test_copies_on_the_device_have_bytes(tmp_path: Path) -> None:
    x = torch.ones(COUNT, device="cuda")

    def code() -> None:
        x.clone()  # @clone

    found = record(code, tmp_path)
    line = found.at("clone")
    assert (line.d2d_bytes, line.h2d_bytes, line.d2h_bytes) == (BYTES, 0, 0)
    assert line.d2d_ns == total_ns(copies(found, "DtoD")) == line.self_device_ns


def test_fills_stand_at_their_line(tmp_path: Path) -> None:
    x = torch.ones(COUNT, device="cuda")

    def code() -> None:
        x.zero_()  # @zero

    found = record(code, tmp_path)
    assert found.at("zero").self_device_ns == total_ns(found.work_under("aten::zero_"))


def test_memory_is_counted_where_it_is_taken_and_given_back(tmp_path: Path) -> None:
    def code() -> None:
        x = torch.empty(COUNT, device="cuda")  # @allocate
        x.fill_(1)
        del x  # @release

    found = record(code, tmp_path, profile_memory=True)
    assert found.at("allocate").bytes_allocated == BYTES
    assert found.at("release").bytes_freed == BYTES
