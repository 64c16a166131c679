"""On a CUDA device: NCCL with a single rank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from gpu.recorded import record, total_ns

pytestmark = pytest.mark.gpu

COUNT = 1 << 16


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    if not (dist.is_available() and dist.is_nccl_available()):
        pytest.skip(f"torch {torch.__version__} was built without NCCL")
    dist.init_process_group(
        "nccl", init_method=f"file://{tmp_path / 'rendezvous'}", rank=0, world_size=1, device_id=torch.device("cuda", 0)
    )
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_collectives_stand_at_their_lines(tmp_path: Path) -> None:
    x = torch.ones(COUNT, device="cuda")
    out = torch.empty(COUNT, device="cuda")

    def code() -> None:
        torch.sin(x)  # @compute
        dist.all_reduce(x, op=dist.ReduceOp.AVG)  # @all_reduce
        dist.all_gather_into_tensor(out, x)  # @all_gather
        torch.cuda.synchronize()

    found = record(code, tmp_path)
    kernels = [span for span in found.work if span.name.lower().startswith("nccl")]
    compute = total_ns(found.work_under("aten::sin"))
    assert found.at("compute").self_device_ns == compute, found.describe_lines()
    lines = [found.at("all_reduce"), found.at("all_gather")]
    assert sum(line.self_device_ns for line in lines) == total_ns(found.work) - compute
    assert sum(line.collective_ns for line in lines) == sum(span.duration_ns for span in kernels)
    assert all(line.operators > 0 for line in lines)
