"""Counters of GPUs by their vendors' libraries, for which modules of ours stand in; tests/gpu has a real device."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from deepscope.capture.counters.devices import AmdDevices, NvidiaDevices
from deepscope.capture.counters.machine import Machine
from deepscope.capture.counters.sampler import CounterSamples
from deepscope.capture.counters.source import CounterSource, NoSensorError
from deepscope.capture.torch_compat import DeviceInUse
from machine_folders import machine, write
from stand_in_gpus import Amd, Nvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    found = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", found)
    return found


def values_of(source: CounterSource) -> dict[tuple[str, str], float]:
    named = [(series.track, series.name) for series in source.series]
    return dict(zip(named, source.read(), strict=True))


def test_all_that_nvml_tells_of_a_device(tmp_path: Path, nvml: Nvml):
    root = write(tmp_path, {"sys/bus/pci/devices/0000:1b:00.0/numa_node": "1\n"})
    source = NvidiaDevices(root, [3])
    nvml.reasons = 0x20 | 0x04 | 0x01
    assert values_of(source) == {
        ("GPU busy", "3"): 87,
        ("GPU memory busy", "3"): 34,
        ("GPU memory", "3"): 20 << 30,
        ("GPU power", "3"): 612.5,
        ("GPU SM clock", "3"): 1980,
        ("GPU memory clock", "3"): 2619,
        ("GPU temperature", "3"): 71,
        ("GPU throttling", "3 power cap"): 1,
        ("GPU throttling", "3 hardware slowdown"): 0,
        ("GPU throttling", "3 thermal"): 1,
        ("GPU throttling", "3 power brake"): 0,
        ("PCIe received", "3"): 2000,
        ("PCIe sent", "3"): 1000,
        ("NVLink received", "3"): 20,
        ("NVLink sent", "3"): 10,
    }
    (facts,) = source.devices
    assert (facts.series, facts.name, facts.bus_id) == ("3", "NVIDIA H100 80GB HBM3", "00000000:1B:00.0")
    assert (facts.numa_node, facts.max_sm_mhz, facts.max_memory_mhz) == (1, 1980, 2619)
    assert (facts.power_limit_w, facts.slowdown_celsius) == (700, 89)
    source.close()
    assert nvml.opened == 0


def test_totals_of_links_become_bytes_in_a_second(tmp_path: Path, nvml: Nvml):
    source = NvidiaDevices(tmp_path, [0])
    samples = CounterSamples(source.series)
    samples.add(0, source.read())
    nvml.fields = {197: 1000 + (4 << 20), 198: 2000, 138: 10 + 2048, 139: 20}
    samples.add(2_000_000_000, source.read())
    levels = {track.name: track.values[0] for track in samples.tracks()}
    assert levels["PCIe sent"] == [2 << 20]
    assert levels["NVLink sent"] == [1 << 20]
    assert "PCIe received" not in levels
    assert "GPU throttling" not in levels


def test_what_a_device_does_not_know_is_listed_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    old = Nvml(unknown=("nvmlDeviceGetPowerUsage", "nvmlDeviceGetName"), fields={})
    monkeypatch.setitem(sys.modules, "pynvml", old)
    source = NvidiaDevices(tmp_path, [0])
    found = values_of(source)
    # A driver without totals of PCIe measures it; the device has no NVLink.
    assert found[("PCIe sent", "0")] == 50 * 1024
    assert found[("PCIe received", "0")] == 70 * 1024
    assert not [track for track, _ in found if track.startswith("NVLink") or track == "GPU power"]
    assert {(one.sensor, one.reason) for one in source.missing} == {
        ("GPU power of 0", "Not Supported"),
        ("NVLink received of 0", "Not Supported"),
        ("NVLink sent of 0", "Not Supported"),
    }
    assert source.devices[0].name == ""
    assert source.devices[0].numa_node == -1


def test_a_driver_older_than_the_package_tells_why_clocks_are_low(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    old = Nvml(unknown=("nvmlDeviceGetCurrentClocksEventReasons",))
    monkeypatch.setitem(sys.modules, "pynvml", old)
    source = NvidiaDevices(tmp_path, [0])
    old.reasons = 0x40
    assert values_of(source)[("GPU throttling", "0 thermal")] == 1
    assert source.missing == []


def test_a_device_that_is_lost_leaves_gaps(tmp_path: Path, nvml: Nvml):
    source = NvidiaDevices(tmp_path, [0])
    nvml.lost = True
    values = source.read()
    assert len(values) == len(source.series)
    assert all(value != value for value in values)


def test_without_the_package_or_the_driver_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoSensorError, match=r"pip install 'deepscope\[counters\]'"):
        NvidiaDevices(tmp_path, [0])
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(unknown=("nvmlInit",)))
    with pytest.raises(NoSensorError, match="NVML: Not Supported"):
        NvidiaDevices(tmp_path, [0])


def test_amds_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = write(tmp_path, {"sys/bus/pci/devices/0000:c1:00.0/numa_node": "0"})
    monkeypatch.setitem(sys.modules, "amdsmi", Amd())
    source = AmdDevices(root, [1])
    assert values_of(source) == {
        ("GPU busy", "1"): 91,
        ("GPU memory busy", "1"): 40,
        ("GPU memory", "1"): 1 << 30,
        ("GPU power", "1"): 700,
        ("GPU SM clock", "1"): 2100,
        ("GPU memory clock", "1"): 1300,
        ("GPU temperature", "1"): 77,
    }
    (facts,) = source.devices
    assert (facts.name, facts.numa_node, facts.max_sm_mhz) == ("AMD Instinct MI300X", 0, 2100)


def test_amds_library_where_it_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    unknown = ("current_socket_power", "HOTSPOT", "umc_activity", "market_name")
    monkeypatch.setitem(sys.modules, "amdsmi", Amd(unknown=unknown))
    source = AmdDevices(tmp_path, [0, 7])
    found = values_of(source)
    assert found[("GPU power", "0")] == 690
    assert found[("GPU temperature", "0")] == 66
    assert ("GPU memory busy", "0") not in found
    assert [one.sensor for one in source.missing] == ["GPU memory busy of 0", "GPU 7"]
    assert source.devices[0].name == ""
    monkeypatch.setitem(sys.modules, "amdsmi", Amd(count=0))
    with pytest.raises(NoSensorError, match="amdsmi: no driver"):
        AmdDevices(tmp_path, [0])


def test_devices_are_opened_once_torch_uses_them(tmp_path: Path, nvml: Nvml):
    in_use: list[tuple[str, tuple[DeviceInUse, ...]]] = [("", ())]
    found = Machine(machine(tmp_path), lambda: in_use[0])
    assert not [one for one in found.open().account.missing if "GPU" in one.sensor]
    assert nvml.opened == 0
    in_use[0] = ("nvidia", (DeviceInUse(0, 0),))
    opened = found.open()
    assert [facts.series for facts in opened.account.devices] == ["0"]
    assert found.open().sources[-1] is opened.sources[-1]
    in_use[0] = ("nvidia", (DeviceInUse(1, 1),))  # what was in use is counted on
    again = found.open()
    assert [facts.series for facts in again.account.devices] == ["0", "1"]
    assert opened.account.devices != again.account.devices
    assert nvml.opened == 1
    in_use[0] = ("", ())
    assert found.open().sources[-1] is again.sources[-1]
    found.close()
    assert nvml.opened == 0


def test_a_gpu_is_never_taken_for_another(tmp_path: Path, nvml: Nvml):
    in_use = (DeviceInUse(0, 5), DeviceInUse(1, -1))
    opened = Machine(machine(tmp_path), lambda: ("nvidia", in_use)).open()
    assert [(facts.series, facts.ordinal) for facts in opened.account.devices] == [("5", 0)]
    (missing,) = (one for one in opened.account.missing if one.sensor.startswith("GPU"))
    assert missing.sensor == "GPU 1"
    assert "cannot be told" in missing.reason


def test_a_gpu_without_its_library_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    opened = Machine(machine(tmp_path), lambda: ("nvidia", (DeviceInUse(0, 0),))).open()
    assert [one.reason for one in opened.account.missing if one.sensor == "GPU"] == [
        "nvidia-ml-py is not installed: pip install 'deepscope[counters]'"
    ]


def test_a_library_that_fails_as_nobody_foresaw_costs_the_gpus_alone(tmp_path: Path, nvml: Nvml):
    nvml.nvmlDeviceGetHandleByIndex = lambda index: {}[index]
    opened = Machine(machine(tmp_path), lambda: ("nvidia", (DeviceInUse(0, 0),))).open()
    assert opened.sources
    assert "GPU" in {one.sensor for one in opened.account.missing}


def test_the_stand_in_has_no_name_of_its_own():
    real = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    for name, value in vars(Nvml).items():
        if name.startswith(("nvml", "NVML")):
            assert hasattr(real, name), name
            if inspect.isfunction(value):
                ours, theirs = (list(inspect.signature(one).parameters) for one in (value, getattr(real, name)))
                assert ours[1:] == theirs, name
            elif isinstance(value, int):
                assert value == getattr(real, name), name
