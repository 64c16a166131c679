"""On a CUDA device: waiting for it stands at the line that waits, and at no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gpu.recorded import Recorded, record, total_ns, union_ns

pytestmark = pytest.mark.gpu

CYCLES = 20_000_000  # about 10 ms
SYNCS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def keep_busy(x: Tensor) -> Tensor:
    torch.cuda._sleep(CYCLES)  # @launch
    return x + 1  # @add


def waits(code: Callable[[], None], folder: Path) -> Recorded:
    found = record(code, folder)
    assert found.at("launch").wait_ns == 0
    assert found.at("add").wait_ns == 0
    return found


def check_wait(found: Recorded, mark: str, *operators: str) -> None:
    """The wait covers the synchronising calls inside the line's operators, and no more than those operators."""
    outer = found.called(*operators)
    assert outer, f"no {operators} in the trace"
    inner = [sync for sync in found.called(*SYNCS) if any(span.encloses(sync) for span in outer)]
    line = found.at(mark)
    assert total_ns(inner) <= line.wait_ns <= union_ns(outer), f"{line.wait_ns}: {inner}, {outer}"
    spinning = max(span.duration_ns for span in found.work)
    assert line.wait_ns > spinning // 2, "the line waited for the long kernel"


def test_item_waits_on_its_line(tmp_path: Path) -> None:
    x = torch.ones(1, device="cuda")

    def code() -> None:
        y = keep_busy(x)
        y.item()  # @item

    check_wait(waits(code, tmp_path), "item", "aten::_local_scalar_dense")


def test_cpu_waits_on_its_line(tmp_path: Path) -> None:
    x = torch.ones(1024, device="cuda")

    def code() -> None:
        y = keep_busy(x)
        y.cpu()  # @cpu

    found = waits(code, tmp_path)
    check_wait(found, "cpu", "aten::_to_copy", "aten::copy_")
    assert found.at("cpu").d2h_bytes == 4 * 1024


def test_synchronize_waits_on_its_line(tmp_path: Path) -> None:
    x = torch.ones(1, device="cuda")

    def code() -> None:
        keep_busy(x)
        torch.cuda.synchronize()  # @synchronize

    found = waits(code, tmp_path)
    syncs = found.called("cudaDeviceSynchronize")
    spinning = max(span.duration_ns for span in found.work)
    assert found.at("synchronize").wait_ns in {span.duration_ns for span in syncs}
    assert found.at("synchronize").wait_ns > spinning // 2


def test_an_event_waits_on_its_line(tmp_path: Path) -> None:
    x = torch.ones(1, device="cuda")

    def code() -> None:
        keep_busy(x)
        event = torch.cuda.Event()
        event.record()
        event.synchronize()  # @event

    found = waits(code, tmp_path)
    assert found.at("event").wait_ns == total_ns(found.called("cudaEventSynchronize"))
