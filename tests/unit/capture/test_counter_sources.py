"""What the kernel tells, read from files of this machine and from those of machines made to its documents."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from deepscope.capture.counters.container import Container
from deepscope.capture.counters.devices import Adapters
from deepscope.capture.counters.machine import Machine
from deepscope.capture.counters.sampler import CounterSamples, CounterTrack
from deepscope.capture.counters.source import CounterSource, NoSensorError, Series
from machine_folders import GIB, first_version, machine, second_version, write

psutil = pytest.importorskip("psutil", reason="psutil is not installed")
from deepscope.capture.counters.system import (  # noqa: E402 - it needs psutil
    Cores,
    Disks,
    Interfaces,
    MainMemory,
    ThisProcess,
)

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that psutil reads from files."""
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    return machine(tmp_path)


def levels(
    source: CounterSource, change: dict[str, str], root: Path, seconds: float = 2.0
) -> dict[tuple[str, str], float]:
    """What the first stretch says where these files change after so many seconds."""
    samples = CounterSamples(source.series)
    samples.add(0, source.read())
    write(root, change)
    samples.add(int(seconds * 1e9), source.read())
    source.close()
    return {
        (track.name, series): value
        for track in samples.tracks()
        for series, value in zip(track.series, track.values[0], strict=True)
        if value is not None
    }


def test_cores_are_in_use_by_what_their_ticks_grow(made: Path):
    grown = f"cpu  {400 + TICKS} 20 80 5000 {60 + TICKS} 10 10 20 5 0\n"
    grown += f"cpu0 {300 + TICKS} 10 40 2000 {50 + TICKS} 5 5 10 5 0\n"
    grown += "cpu1 100 10 40 3000 10 5 5 10 0 0\nintr 1\n"
    found = levels(Cores(), {"proc/stat": grown}, made)
    # One core's second in two seconds of two cores.
    assert found[("CPU", "all")] == 25
    assert found[("CPU", "waiting for I/O")] == 25
    assert ("CPU", "stolen") not in found
    assert found[("CPU cores", "0")] == 50
    assert ("CPU cores", "1") not in found


def test_a_core_that_is_switched_off_leaves_a_gap(made: Path):
    source = Cores()
    write(made, {"proc/stat": "cpu  400 20 80 5000 60 10 10 20 0 0\ncpu1 100 10 40 0 0 5 5 10 0 0\nintr 1\n"})
    found = dict(zip([(series.track, series.name) for series in source.series], source.read(), strict=True))
    for which in (("CPU", "all"), ("CPU cores", "0"), ("CPU cores", "1")):
        assert found[which] != found[which]
    source.close()


def test_a_process_has_its_own_time_and_faults():
    source = ThisProcess()
    before = source.read()
    mapped = bytearray(64 << 20)
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    cpu_ns, minor, major = (now - then for now, then in zip(source.read(), before, strict=True))
    assert cpu_ns >= 50_000_000
    assert minor > 0
    assert major >= 0
    assert [series.name for series in source.series] == ["process", "minor", "major"]
    del mapped


def test_memory_is_what_cannot_be_had(made: Path):
    found = levels(MainMemory(), {}, made)
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    assert found == {("memory", "used"): 8 * GIB, ("memory", "swap"): GIB, ("memory", "process"): 1024 * page}


def test_swap_is_read_now_and_then(made: Path):
    source = MainMemory()
    write(made, {"proc/meminfo": (made / "proc/meminfo").read_text().replace("1048576", "524288")})
    read = [source.read()[2] for _ in range(11)]
    assert read[0] == GIB * 3 // 2
    write(made, {"proc/meminfo": (made / "proc/meminfo").read_text().replace("524288", "1048576")})
    assert [source.read()[2] for _ in range(11)].count(GIB) >= 1
    source.close()


def test_disks_are_whole_ones_that_were_used(made: Path):
    row = "259 0 nvme0n1 1200 5 {} {} 540 6 {} {} 3 {} 0 0 0 0 0 0 0\n"
    grown = row.format(20000 + 4096, 300 + 2000, 8000, 200 + 6000, 450 + 1500)
    found = levels(Disks(made / "sys/block"), {"proc/diskstats": grown}, made)
    # 1.5 of 2 s with a request, 4 at a time, 240 done, 2 MiB read in 2 s.
    assert found == {
        ("disk busy", "nvme0n1"): 75,
        ("disk queue", "nvme0n1"): 4,
        ("disk requests", "nvme0n1"): 120,
        ("disk read", "nvme0n1"): 1 << 20,
    }


def test_no_disk_is_said(made: Path):
    write(made, {"proc/diskstats": " 8 0 sda 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"})
    with pytest.raises(NoSensorError, match="no disk"):
        Disks(made / "sys/block")


def test_bytes_of_interfaces_and_words_of_adapters(made: Path):
    table = (made / "proc/net/dev").read_text().replace("1000000", "3000000")
    assert levels(Interfaces(), {"proc/net/dev": table}, made) == {("network received", "eth0"): 1e6}
    sent = {"sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "502000"}
    assert levels(Adapters(made), sent, made) == {("InfiniBand sent", "mlx5_0 port 1"): 1e6}


def test_an_adapter_that_does_not_count_is_left_out(tmp_path: Path):
    silent = {"port_rcv_data": "N/A (no PMA)\n", "port_xmit_data": "N/A (no PMA)\n"}
    silent = {f"sys/class/infiniband/bnxt_re0/ports/1/counters/{name}": text for name, text in silent.items()}
    root = write(machine(tmp_path), silent)
    source = Adapters(root)
    assert list(source.read()) == [1000, 2000]
    # A port that goes leaves the others.
    write(root, {"sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "N/A (no PMA)\n"})
    first, second = source.read()
    assert (first != first, second) == (True, 2000)
    source.close()
    with pytest.raises(NoSensorError, match="do not count"):
        Adapters(write(tmp_path / "alone", silent))


@pytest.mark.parametrize("group", ["job", "job/below/that"])
def test_the_quota_of_a_group_or_of_one_above_it(tmp_path: Path, group: str):
    root = second_version(machine(tmp_path), limit=str(4 * GIB), group=group)
    (root / "sys/fs/cgroup/job/below/that").mkdir(parents=True)
    write(root, {"sys/fs/cgroup/job/below/cpu.max": "max 100000"})
    container = Container(root)
    assert container.limits.cpus == 1.5
    assert container.limits.memory_bytes == 4 * GIB
    stat = "usage_usec 8000000\nnr_periods 120\nnr_throttled 55\n"
    found = levels(container, {"sys/fs/cgroup/job/cpu.stat": stat}, root)
    assert found == {
        ("container CPU", "used"): 150,
        ("container periods", "all"): 10,
        ("container periods", "throttled"): 7.5,
        ("memory", "container"): 3 * GIB,
    }


def test_the_quota_of_the_first_version_in_a_container(tmp_path: Path):
    container = Container(first_version(machine(tmp_path)))
    assert container.limits.cpus == 2
    assert container.limits.memory_bytes == 0
    assert list(container.read()) == [100, 7]
    container.close()


def test_a_group_without_limits_is_said(tmp_path: Path):
    with pytest.raises(NoSensorError, match="no limits"):
        Container(second_version(machine(tmp_path), quota="max 100000"))


def test_what_is_not_there_is_listed_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    root = write(tmp_path, {"proc/stat": "", "proc/self/stat": "", "proc/diskstats": ""})
    opened = Machine(root, lambda: ("", ())).open()
    assert [type(source) for source in opened.sources] == [ThisProcess]
    reasons = {one.sensor: one.reason for one in opened.account.missing}
    assert reasons["CPU"] == "the system tells of no cores"
    assert {"memory", "disks", "network"} <= set(reasons)
    assert reasons["InfiniBand"] == "no adapter in /sys/class/infiniband"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_machine_tells_something():
    opened = Machine().open()
    read = {series.track for source in opened.sources for series in source.series}
    assert {"CPU", "process CPU", "memory", "page faults"} <= read
    for source in opened.sources:
        assert len(source.read()) == len(source.series)
        source.close()
    assert opened.account.cores == os.cpu_count()


def rising(count: int, width: int = 1) -> CounterSamples:
    """A total that grows by its number, and a level of that number; a second apart."""
    samples = CounterSamples([Series("network sent", "eth0", is_total=True), Series("memory", "used")][: width + 1])
    for number in range(count):
        samples.add(number * 1_000_000_000, [number * (number + 1) / 2, float(number)])
    return samples


def growth(track: CounterTrack) -> float:
    """What the total grew by, from its levels and their lengths."""
    held = [(later - at) / 1e9 for at, later in zip(track.at_ns, track.at_ns[1:], strict=False)]
    return sum(value[0] * seconds for value, seconds in zip(track.values, held, strict=False) if value[0] is not None)


@pytest.mark.parametrize("count", [2, 3, 7, 8, 500, 501])
def test_thinning_keeps_all_growth_and_the_mean(count: int):
    samples = rising(count)
    whole = growth(samples.tracks()[-1])
    assert whole == pytest.approx(count * (count - 1) / 2, rel=1e-3)
    samples.thin()
    assert len(samples) == count // 2 + 1
    thinned = {track.name: track for track in samples.tracks()}
    assert growth(thinned["network sent"]) == pytest.approx(whole, rel=1e-3)
    assert thinned["network sent"].at_ns[-1] == (count - 1) * 1_000_000_000


def test_a_total_that_begins_anew_leaves_a_gap():
    samples = rising(3)
    samples.add(3_000_000_000, [1.0, 3.0])
    samples.add(4_000_000_000, [6.0, 4.0])
    (sent,) = (track for track in samples.tracks() if track.name == "network sent")
    assert [value[0] for value in sent.values] == [1, 2, None, 5, 5]


@pytest.mark.parametrize(("last_ms", "rates"), [(202, [10.0, 29.41, 29.41]), (250, [10.0, 20.0, 20.0])])
def test_a_short_stretch_at_the_end_is_no_peak(last_ms: int, rates: list[float]):
    samples = CounterSamples([Series("process CPU", "process", is_total=True)])
    for at_ms, total in ((0, 0), (100, 1), (200, 3), (last_ms, 4)):
        samples.add(at_ms * 1_000_000, [float(total)])
    (track,) = samples.tracks()
    held = dict(zip(track.at_ns, (value for (value,) in track.values), strict=True))
    assert [held.get(ms * 1_000_000) for ms in (0, 100, last_ms)] == rates
    # Nothing of its growth is lost.
    assert growth(track) == pytest.approx(4, rel=1e-3)


def test_in_a_window_of_milliseconds_a_tick_is_no_more_than_all_cores(made: Path):
    grown = f"cpu  {400 + TICKS} 20 80 5000 60 10 10 20 5 0\ncpu0 {300 + TICKS} 10 40 2000 50 5 5 10 5 0\n"
    grown += "cpu1 100 10 40 3000 10 5 5 10 0 0\nintr 1\n"
    found = levels(Cores(), {"proc/stat": grown}, made, seconds=0.001)
    assert found[("CPU", "all")] == found[("CPU cores", "0")] == 100


def test_a_reading_that_is_no_number_leaves_nothing_behind():
    samples = rising(3)
    with pytest.raises(TypeError):
        samples.add(3_000_000_000, [6.0, None])  # type: ignore[list-item]
    samples.add(4_000_000_000, [10.0, 4.0])
    (sent,) = (track for track in samples.tracks() if track.name == "network sent")
    assert growth(sent) == pytest.approx(10)


def test_one_reading_tells_nothing():
    assert rising(1).tracks() == []
