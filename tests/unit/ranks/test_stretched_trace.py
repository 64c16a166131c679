"""A recorded trace of one rank beside itself with a slower device: kernels are longer, and all else is later."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from deepscope.analysis.build import build_profile
from deepscope.ranks.rank_summary import summary_of
from deepscope.ranks.side_by_side import side_by_side
from deepscope.trace.read import read_trace
from recorded_traces import needs_shared_traces, shared_paths


def stretch(source: Path, target: Path, times: float) -> None:
    """Time runs so many times as slowly while a kernel runs that is no collective."""
    document = json.loads(gzip.decompress(source.read_bytes()))
    events = [one for one in document["traceEvents"] if "ts" in one]
    runs = sorted(
        (float(one["ts"]), float(one["ts"]) + float(one["dur"]))
        for one in events
        if one.get("cat") == "kernel" and "nccl" not in one["name"].lower()
    )
    edges: list[list[float]] = []
    for start, end in runs:
        if edges and start <= edges[-1][1]:
            edges[-1][1] = max(edges[-1][1], end)
        else:
            edges.append([start, end])
    knots = np.array(edges).reshape(-1)
    later = np.cumsum(np.where(np.arange(len(knots)) % 2, np.diff(knots, prepend=knots[0]), 0)) * (times - 1)
    for one in events:
        start = float(one["ts"])
        moved = start + np.interp(start, knots, later)
        if "dur" in one:
            end = start + float(one["dur"])
            one["dur"] = round(end + np.interp(end, knots, later) - moved, 3)
        one["ts"] = round(moved, 3)
    target.write_bytes(gzip.compress(json.dumps(document).encode(), 1))


@needs_shared_traces
@pytest.mark.parametrize("times", [1.15, 1.3, 2])
def test_a_slower_device_is_named_by_how_much_slower_it_is(tmp_path: Path, times: float) -> None:
    (path,) = (path for path in shared_paths() if path.name.startswith("torch-profile-trace_05"))
    stretch(path, tmp_path / "slow.json.gz", times)
    usual, slow = (summary_of(build_profile(read_trace(one))) for one in (path, tmp_path / "slow.json.gz"))
    ranks = [msgspec.structs.replace(slow if rank == 2 else usual, rank=rank) for rank in range(4)]
    (one,) = side_by_side(ranks).stragglers
    assert (one.rank, one.cause, one.late_steps) == (2, "hardware", 5)
    assert one.figures[0].value == pytest.approx(times, rel=0.01)
    assert one.hardware_ns == pytest.approx(one.excess_ns, rel=0.1)
