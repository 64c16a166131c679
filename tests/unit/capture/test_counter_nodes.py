"""NUMA nodes, memory bandwidth, and machines without /proc."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from deepscope.capture.counters.devices import node_of_device
from deepscope.capture.counters.machine import Machine, MemoryBandwidth, MemoryNodes, memory_nodes
from deepscope.capture.counters.source import NoSensorError
from deepscope.trace.format.counters import CounterAccount, MemoryNode
from machine_folders import GIB, machine, two_nodes, write


def test_where_a_process_may_run_and_has_its_memory(tmp_path: Path):
    root = two_nodes(machine(tmp_path))
    assert memory_nodes(root, {0, 1, 64}, GIB) == [
        MemoryNode(0, 34, 3, 5 * 4096 + 3 * (2 << 20), [10, 21]),
        MemoryNode(1, 32, 0, 7 * 4096, [21, 10]),
    ]
    write(root, {"sys/devices/system/node/node0/distance": "10\n"})  # not one for each node
    assert [node.distances for node in memory_nodes(root, (), GIB)] == [[], [21, 10]]


def test_a_large_process_is_asked_through_its_group(tmp_path: Path):
    root = two_nodes(machine(tmp_path))
    write(root, {"sys/fs/cgroup/user.slice/job/memory.numa_stat": "anon N0=300 N1=500\nfile N0=9 N1=9\n"})
    assert [node.process_bytes for node in memory_nodes(root, (), 100 * GIB)] == [300, 500]


def test_one_node_is_none(tmp_path: Path):
    root = write(machine(tmp_path), {"sys/devices/system/node/node0/cpulist": "0-1"})
    assert memory_nodes(root, {0}, GIB) == []
    with pytest.raises(NoSensorError, match="one NUMA node"):
        MemoryNodes(root)


def test_pages_for_processes_of_another_node(tmp_path: Path):
    source = MemoryNodes(two_nodes(machine(tmp_path)))
    assert [series.name for series in source.series] == ["0", "1"]
    assert list(source.read()) == [70, 90]


@pytest.mark.parametrize("bus_id", ["00000000:1B:00.0", "0000:1b:00.0"])
def test_the_node_of_a_device(tmp_path: Path, bus_id: str):
    root = write(tmp_path, {"sys/bus/pci/devices/0000:1b:00.0/numa_node": "1\n"})
    assert node_of_device(root, bus_id) == 1
    assert node_of_device(root, "0000:2b:00.0") == -1


def test_bandwidth_by_cache(tmp_path: Path):
    folder = "sys/fs/resctrl/mon_data"
    root = write(tmp_path, {f"{folder}/mon_L3_00/mbm_total_bytes": "500\n", f"{folder}/mon_L3_01/other": ""})
    source = MemoryBandwidth(root)
    assert [series.name for series in source.series] == ["L3_00"]
    assert list(source.read()) == [500]
    write(root, {f"{folder}/mon_L3_00/mbm_total_bytes": "Unavailable\n"})
    assert math.isnan(source.read()[0])


def test_the_account_of_a_window_has_the_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    found = Machine(two_nodes(machine(tmp_path)), lambda: ("", ()))
    account = CounterAccount()
    found.finish(account)
    assert [node.node for node in account.nodes] == [0, 1]
    missing = {one.sensor for one in found.open().account.missing}
    assert missing == {"container", "memory bandwidth"}
    found.close()


def test_the_machine_as_psutil_has_it(tmp_path: Path):
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    opened = Machine(tmp_path, lambda: ("", ())).open()  # nothing of Linux's alone
    assert opened.account.cores == psutil.cpu_count()
    named = [(series.track, series.name) for source in opened.sources for series in source.series]
    values = dict(zip(named, (value for source in opened.sources for value in source.read()), strict=True))
    assert {track for track, _ in named} <= {
        *("CPU", "CPU cores", "process CPU", "page faults", "memory", "network received", "network sent"),
        *("disk busy", "disk queue", "disk requests", "disk read", "disk written"),
    }
    assert values[("memory", "process")] == pytest.approx(psutil.Process().memory_info().rss, rel=0.5)
    times = psutil.cpu_times()
    assert values[("CPU", "all")] == pytest.approx(sum(times) - times.idle - getattr(times, "iowait", 0), rel=0.05)


def test_without_psutil_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.delitem(sys.modules, "deepscope.capture.counters.system", raising=False)
    monkeypatch.delattr("deepscope.capture.counters.system", raising=False)
    opened = Machine(tmp_path, lambda: ("", ())).open()
    assert opened.sources == []
    assert "pip install 'deepscope[counters]'" in opened.account.missing[0].reason


def test_a_psutil_that_fails_oddly_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")

    def denied(**_: object) -> None:
        raise psutil.AccessDenied(msg="not here")

    monkeypatch.setattr(psutil, "net_io_counters", denied)
    opened = Machine(tmp_path, lambda: ("", ())).open()
    assert "CPU" in {series.track for source in opened.sources for series in source.series}
    assert "not here" in {one.sensor: one.reason for one in opened.account.missing}["network"]
