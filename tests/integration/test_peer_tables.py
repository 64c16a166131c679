"""Operators and kernels side by side with torch's own `key_averages` and with torch-tb-profiler's tables.

docs/other-tools.md has the peers' definitions where they are others.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from deepscope.analysis.build import build_profile
from deepscope.records import Profile
from deepscope.trace.read import read_trace
from recorded_traces import each_trace

_CLOCK = 1e-3 + 1e-4
"""Microseconds by which a written time may differ from the measured one: traces have three decimals."""
_UNREADABLE = "msprof-analyze"
"""A bare array, which torch-tb-profiler cannot read."""
_OVERLAPPING = ("holistictraceanalysis-rank-0", "torchrec-")
"""Some operators of these end after the one they began in; which calls which is then a matter of taste."""


def work() -> None:
    """Convolutions, products, a recurrent layer, an optimizer: forward and backward, in several shapes."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
    recurrent = nn.LSTM(10, 4)
    optimizer = torch.optim.Adam([*model.parameters(), *recurrent.parameters()])
    for batch in (4, 4, 6):
        x = model(torch.randn(batch, 3, 8, 8))
        loss = recurrent(x[None])[0].square().mean() + torch.zeros(3, dtype=torch.int64).to(torch.float32).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.arange(10).sort()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """torch's own profile of a run, and its trace."""
    path = tmp_path_factory.mktemp("peers") / "run.pt.trace.json"
    work()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as profiler:
        work()
    profiler.export_chrome_trace(str(path))
    return profiler, path


def test_calls_and_cpu_time_by_name_are_those_of_key_averages(recorded) -> None:
    profiler, path = recorded
    profile = build_profile(read_trace(path))
    ours = {row.name: row for row in profile.operators}
    theirs = {row.key: row for row in profiler.key_averages() if row.key.startswith("aten::")}
    assert set(theirs) <= set(ours)
    assert len(theirs) > 40
    for name, row in theirs.items():
        assert ours[name].calls == row.count, name
        assert ours[name].self_cpu_ns / 1000 == pytest.approx(row.self_cpu_time_total, abs=_rounding(profile)), name


def test_calls_and_cpu_time_by_shapes_are_those_of_key_averages(recorded) -> None:
    profiler, path = recorded
    profile = build_profile(read_trace(path), details=("shapes",))
    ours: dict[tuple[str, str], list[int]] = {}
    for row in profile.operators_in_detail:
        sums = ours.setdefault((row.name, _shapes(json.loads(row.in_shapes or "[]"))), [0, 0])
        sums[0] += row.calls
        sums[1] += row.self_cpu_ns
    rows = [row for row in profiler.key_averages(group_by_input_shape=True) if row.key.startswith("aten::")]
    theirs = {(row.key, _shapes(row.input_shapes)): row for row in rows}
    assert len(theirs) == len(rows) > 100
    assert set(theirs) == {key for key in ours if key[0].startswith("aten::")}
    for key, row in theirs.items():
        calls, self_cpu_ns = ours[key]
        assert calls == row.count, key
        assert self_cpu_ns / 1000 == pytest.approx(row.self_cpu_time_total, abs=_rounding(profile)), key


def _rounding(profile: Profile) -> float:
    """Each begin and end may be off by the clock's rounding, of an operator and of those that it calls."""
    return 4 * _CLOCK * sum(row.calls for row in profile.operators)


def _shapes(shapes: Any) -> str:
    """key_averages has no shapes of tensors in lists; the trace has them."""
    return str([list(one) if all(isinstance(size, int) for size in one) else [] for one in shapes])


@pytest.fixture(scope="module", params=[one for one in each_trace() if _UNREADABLE not in one.id])
def both(request: pytest.FixtureRequest) -> tuple[Any, Profile, str]:
    """torch-tb-profiler's data of a trace, and ours."""
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.data import RunProfileData

    logging.getLogger("tensorboard.plugins.torch_tb_profiler").setLevel(logging.CRITICAL)
    with io.Cache() as cache:
        data = RunProfileData.parse("worker", "1", str(request.param), cache)
    return data, build_profile(read_trace(request.param)), request.param.name


def test_kernels_are_those_of_torch_tb_profiler(both) -> None:
    data, profile, _ = both
    if not data.has_kernel:
        return  # nor does it know those of devices other than CUDA's and ROCm's
    ours = {row.name: row for row in profile.kernels}
    assert len(data.kernel_stat)
    for name, row in data.kernel_stat.iterrows():
        mine = ours[name]
        assert mine.calls == row["count"]
        assert mine.device_ns / 1000 == pytest.approx(row["sum"], abs=_CLOCK * mine.calls, rel=1e-6)
        assert (mine.min_ns / 1000, mine.max_ns / 1000) == pytest.approx((row["min"], row["max"]), abs=_CLOCK)
        assert mine.uses_tensor_cores == bool(row["tc_used"])
        # Both weigh by time; what a trace does not tell counts as 0 there.
        assert mine.sm_blocks_ns / max(mine.device_ns, 1) == pytest.approx(row["blocks_per_sm"], abs=0.01, rel=1e-3)
        assert 100 * mine.occupied_ns / max(mine.device_ns, 1) == pytest.approx(row["occupancy"], abs=0.5)


def test_operators_are_those_of_torch_tb_profiler(both) -> None:
    """Calls everywhere; device time where it finds the launches of operators, which it does by old recorders' ids."""
    data, profile, name = both
    ours = {row.name: row for row in profile.operators}
    theirs = {row.name: row for row in data.op_list_groupby_name or []}
    assert set(theirs) <= set(ours)
    if name.startswith(_OVERLAPPING):
        differs = Counter(row.name for row in theirs.values() if ours[row.name].calls != row.calls)
        assert len(differs) <= 5
        return
    assert {key: row.calls for key, row in theirs.items()} == {key: ours[key].calls for key in theirs}
    if name.startswith("kineto-resnet50"):
        assert sum(row.self_device_duration for row in theirs.values()) > 500_000
        for key, row in theirs.items():
            rounding = _CLOCK * row.calls + 1e-6
            assert ours[key].self_device_ns / 1000 == pytest.approx(row.self_device_duration, abs=rounding)
            assert ours[key].total_device_ns / 1000 == pytest.approx(row.device_duration, abs=rounding)
            assert ours[key].tensor_core_self_ns / 1000 == pytest.approx(row.tc_self_duration, abs=rounding)
            assert ours[key].tensor_core_total_ns / 1000 == pytest.approx(row.tc_total_duration, abs=rounding)
            assert ours[key].tensor_core_eligible == bool(row.tc_eligible)
            assert ours[key].total_cpu_ns / 1000 <= row.host_duration + rounding  # it counts recursion again
