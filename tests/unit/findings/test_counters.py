"""DS026 to DS029, from counters: planted on both sides of each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trace_builder import TraceBuilder

MS = 1_000_000
FILE = "/home/me/train.py"
DEVICE = {"series": "0", "numa_node": 1, "max_sm_mhz": 2000, "power_limit_w": 700.0}


def run(*, kernel_ms: int = 80, loading_ms: int = 0, **counters: Any) -> TraceBuilder:
    """Ten steps of 100 ms, with a kernel of `kernel_ms` and loading at the beginning of each."""
    builder = TraceBuilder(deepscope={"counters": {"devices": [DEVICE], **counters}})
    for number in range(10):
        at = number * 100 * MS
        builder.step(number, at, 100 * MS).line(FILE, 5, "main", at, 99 * MS)
        if loading_ms:
            builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, loading_ms * MS)
        if kernel_ms:
            builder.kernel("gemm", at + 10 * MS, at + (100 - kernel_ms) * MS, kernel_ms * MS)
        else:
            builder.op("aten::mm", at + (loading_ms + 1) * MS, 10 * MS)
    return builder


def sampled(builder: TraceBuilder, track: str, levels: dict[str, list[float]], every_ms: int = 100) -> TraceBuilder:
    """Eleven samples of each series, from the beginning on; the last value repeats."""
    for number in range(11):
        values = {name: given[min(number, len(given) - 1)] for name, given in levels.items()}
        builder.counter(f"DeepScope: {track}", number * every_ms * MS, **values)
    return builder


def clocks(mhz: float, *, held: int = 5, reason: str = "thermal", every_ms: int = 100, **options: Any) -> TraceBuilder:
    """The clock is at `mhz` for the first `held` samples, for this reason, and at its maximum from then on."""
    builder = sampled(run(**options), "GPU SM clock", {"0": [mhz] * held + [2000.0]}, every_ms)
    sampled(builder, "GPU temperature", {"0": [80.0, 91.0, 85.0]}, every_ms)
    return sampled(builder, "GPU throttling", {f"0 {reason}": [1.0] * held + [0.0]}, every_ms)


def test_a_device_that_clocks_down_is_found_with_its_figures(findings_of):
    (found,) = findings_of(clocks(1200.0), "DS026")
    assert (found.file, found.line, found.severity) == ("", 0, "warning")
    assert found.evidence == {
        "device": "0",
        "clock_mhz": 1200.0,
        "max_clock_mhz": 2000.0,
        "held_down_ratio": 0.5,
        "reasons": "thermal 50%",
        "peak_celsius": 91.0,
        "power_limit_w": 700.0,
    }
    # Half of the window, of that the kernels' 80 %, of that what a clock of 1200 in place of 2000 takes longer.
    assert found.saving_ns == pytest.approx(500 * MS * 0.8 * 0.4, rel=1e-6)
    assert "1,200 of 2,000 MHz" in found.message
    assert found.remedy.text.startswith("Cool it")


@pytest.mark.parametrize(
    ("builder", "fires"),
    [
        (clocks(1790.0), True),
        (clocks(1810.0), False),  # no more than boards differ
        (clocks(1200.0, held=2), True),
        (clocks(1200.0, held=1), False),  # for a moment
        (clocks(1200.0, reason="power cap"), True),
        (clocks(1200.0, every_ms=40), False),  # 0.4 s of samples
        (clocks(1200.0, kernel_ms=0), False),  # no device at work
        (sampled(run(), "GPU SM clock", {"0": [300.0]}), False),  # idle: nothing holds it down
    ],
)
def test_where_a_clock_is_a_finding(findings_of, builder, fires):
    assert bool(findings_of(builder, "DS026")) is fires


@pytest.mark.parametrize(("ordinal", "busy_ms"), [(0, 80), (1, 30), (2, 0)])
def test_what_a_clock_costs_goes_by_the_devices_number_in_the_trace(findings_of, ordinal, busy_ms):
    builder = clocks(1200.0, devices=[{**DEVICE, "ordinal": ordinal}])
    for number in range(10):
        at = number * 100 * MS
        builder.kernel("gemm", at + 10 * MS, at + 70 * MS, 30 * MS, device=1)
    (found,) = findings_of(builder, "DS026")
    assert found.evidence["device"] == "0"  # in nvidia-smi
    assert found.saving_ns == pytest.approx(5 * busy_ms * MS * 0.4, rel=1e-6)


def test_the_gravest_reason_has_the_remedy(findings_of):
    builder = clocks(1200.0, reason="power cap")
    sampled(builder, "GPU throttling", {"0 power cap": [1.0] * 5 + [0.0], "0 hardware slowdown": [1.0, 0.0]})
    (found,) = findings_of(builder, "DS026")
    assert found.evidence["reasons"] == "power cap 50%, hardware slowdown 10%"
    assert "administrator" in found.remedy.text


@pytest.mark.parametrize(("part", "fires"), [(0.125, False), (0.5, True)])
def test_of_samples_that_became_one_most_must_say_that_the_clock_is_held_down(findings_of, part, fires):
    builder = sampled(run(), "GPU SM clock", {"0": [1200.0]})
    assert bool(findings_of(sampled(builder, "GPU throttling", {"0 power cap": [part]}), "DS026")) is fires


def disk(
    busy: float,
    queue: float,
    *,
    requests: float | None = None,
    loading_ms: int = 40,
    every_ms: int = 100,
    **options: Any,
) -> TraceBuilder:
    builder = run(loading_ms=loading_ms, kernel_ms=50, **options)
    if requests is not None:
        sampled(builder, "disk requests", {"nvme0n1": [requests]}, every_ms)
    sampled(builder, "disk busy", {"nvme0n1": [busy], "sda": [100.0]}, every_ms)
    sampled(builder, "disk read", {"nvme0n1": [5e8]}, every_ms)
    return sampled(builder, "disk queue", {"nvme0n1": [queue], "sda": [1.0]}, every_ms)


def test_a_full_disk_is_found_where_data_is_awaited(findings_of):
    (found,) = findings_of(disk(97.0, 24.0, requests=8000.0), "DS027")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {
        "disk": "nvme0n1",
        "busy_ratio": 0.97,
        "queue": 24.0,
        "loading_ns": 400 * MS,
        "request_us": 3000.0,
        "read_bytes_per_s": 5e8,
    }
    assert (found.saving_ns, found.severity) == (0, "warning")


@pytest.mark.parametrize(
    ("builder", "fires"),
    [
        (disk(90.0, 4.0), True),
        (disk(89.0, 24.0), False),
        (disk(100.0, 3.9), False),  # one or two readers: more of them would read more
        (disk(100.0, 24.0, requests=12_000.0), True),  # 2 ms each
        (disk(100.0, 24.0, requests=13_000.0), False),  # a flash disk that has room for more
        (disk(100.0, 24.0, requests=0.0), True),  # none was done
        (disk(100.0, 24.0, loading_ms=4), False),  # nobody waits for it
        (disk(100.0, 24.0, loading_ms=25), False),  # 0.25 s of loading
        (disk(100.0, 24.0, every_ms=20), False),  # sampled for 0.2 s
    ],
)
def test_where_a_disk_is_a_finding(findings_of, builder, fires):
    assert bool(findings_of(builder, "DS027")) is fires


def unchanged(builder: TraceBuilder, track: str, **values: float) -> TraceBuilder:
    """As a trace has what does not change: its first sample and its last one."""
    for at in (0, 1000 * MS):
        builder.counter(f"DeepScope: {track}", at, **values)
    return builder


@pytest.mark.parametrize(("samples", "fires"), [(11, True), (4, False)])
def test_what_does_not_change_is_a_finding_all_the_same(findings_of, samples, fires):
    builder = unchanged(run(samples=samples), "GPU SM clock", **{"0": 345.0})
    unchanged(builder, "GPU throttling", **{"0 hardware slowdown": 1.0})
    assert bool(findings_of(builder, "DS026")) is fires
    builder = unchanged(run(samples=samples, loading_ms=40), "disk busy", sda=100.0)
    assert bool(findings_of(unchanged(builder, "disk queue", sda=24.0), "DS027")) is fires


def node(number: int, allowed: int, size_bytes: int = 0, distances: Sequence[int] = ()) -> dict[str, Any]:
    told = {"node": number, "cpus": 32, "allowed_cpus": allowed, "process_bytes": size_bytes}
    return {**told, "distances": list(distances)}


def test_a_process_that_may_only_run_far_from_its_device(findings_of):
    (found,) = findings_of(run(nodes=[node(0, 8, 3 << 30), node(1, 0, 1 << 30)]), "DS028")
    assert found.evidence == {
        "device": "0",
        "device_node": "1",
        "allowed_nodes": "0",
        "far_memory_ratio": 0.75,
    }
    assert (found.saving_ns, found.severity) == (0, "info")
    assert "--cpunodebind=1" in found.remedy.text


@pytest.mark.parametrize(
    ("nodes", "severity"),
    [
        ([node(0, 0), node(1, 8)], None),
        ([node(0, 32), node(1, 32)], None),  # bound to nothing
        ([node(0, 32, 91 << 30), node(1, 32, 9 << 30)], "hint"),
        ([node(0, 32, 89 << 30), node(1, 32, 11 << 30)], None),
        ([node(0, 32, 1 << 29), node(1, 32, 0)], None),  # libraries
        ([node(0, 8, distances=[10, 12]), node(1, 0, distances=[12, 10])], None),  # two parts of one socket
        ([node(0, 8, 9 << 30, [10, 12]), node(1, 0, 0, [12, 10])], None),
        ([node(0, 8, distances=[10, 20]), node(1, 0, distances=[20, 10])], "info"),
        ([node(0, 0), node(1, 0, 0, [32, 10, 12]), node(2, 8)], None),
        ([node(0, 8), node(1, 0, 0, [32, 10, 12]), node(2, 0)], "info"),
        ([node(0, 8)], None),
        ([node(0, 8), node(2, 8)], None),  # the device's node is not known
        ([], None),
    ],
)
def test_where_a_place_is_a_finding(findings_of, nodes, severity):
    assert [one.severity for one in findings_of(run(nodes=nodes), "DS028")] == ([severity] if severity else [])


def test_devices_on_several_nodes_or_none_at_work_have_no_wrong_place(findings_of):
    nodes = [node(0, 8), node(1, 0)]
    assert findings_of(run(nodes=nodes, devices=[DEVICE, {**DEVICE, "numa_node": 0}]), "DS028") == []
    assert findings_of(run(nodes=nodes, kernel_ms=0), "DS028") == []


def quota(
    throttled: float, *, cpus: float = 2.0, every_ms: int = 100, periods: float = 10.0, **options: Any
) -> TraceBuilder:
    builder = run(container={"cpus": cpus}, cores=64, **options)
    sampled(builder, "container CPU", {"used": [190.0]}, every_ms)
    return sampled(builder, "container periods", {"all": [periods], "throttled": [throttled]}, every_ms)


def test_a_quota_that_stops_the_process(findings_of):
    (found,) = findings_of(quota(4.0, kernel_ms=0), "DS029")
    assert found.evidence == {
        "quota_cpus": 2.0,
        "machine_cpus": 64.0,
        "stopped_ratio": 0.4,
        "periods": 10.0,
        "used_cpus": 1.9,
    }
    assert found.saving_ns == 400 * MS
    # With a device no more than it was idle.
    (found,) = findings_of(quota(4.0), "DS029")
    assert found.saving_ns == pytest.approx(200 * MS, rel=0.15)


@pytest.mark.parametrize(
    ("builder", "fires"),
    [
        (quota(1.0), True),
        (quota(0.9), False),
        (quota(9.0, cpus=0.0), False),  # the limit is not known
        (quota(9.0, periods=9.0), False),
        (quota(9.0, every_ms=50), False),  # half a second
    ],
)
def test_where_a_quota_is_a_finding(findings_of, builder, fires):
    assert bool(findings_of(builder, "DS029")) is fires
