"""Devices, by their makers' own libraries and files: NVIDIA's and AMD's GPUs, and InfiniBand's adapters."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series, number_in
from deepscope.trace.format.counters import THROTTLE_REASONS, DeviceFacts, MissingSensor

Value = TypeVar("Value")

Reader = Callable[[], Sequence[float]]


class DeviceReaders:
    """Series with the calls that read them; what a device does not know is listed in `missing`."""

    def __init__(self, errors: tuple[type[Exception], ...]) -> None:
        """`errors`: by which the library says that it does not know something."""
        self.series: list[Series] = []
        self.devices: list[DeviceFacts] = []
        self.missing: list[MissingSensor] = []
        self._errors: tuple[type[Exception], ...] = (*errors, AttributeError, KeyError, TypeError, ValueError)
        self._readers: list[tuple[Reader, int]] = []
        """Each with how many values it gives."""

    def _add(self, series: Sequence[Series], read: Reader, *otherwise: Reader) -> None:
        """Series that the device may know; `otherwise` are other ways to read them."""
        problem = ""
        for way in (read, *otherwise):
            try:
                way()
            except self._errors as error:
                problem = problem or str(error)
                continue
            self.series += series
            self._readers.append((way, len(series)))
            return
        self.missing.append(MissingSensor(f"{series[0].track} of {series[0].name.partition(' ')[0]}", problem))

    def read(self) -> Sequence[float]:
        """All devices' values; NaN for what the sensor does not report at this moment."""
        found: list[float] = []
        for read, width in self._readers:
            try:
                found += read()
            except self._errors:
                found += [float("nan")] * width
        return found

    def close(self) -> None:
        """Lets go of the library."""


def node_of_device(root: Path, bus_id: str) -> int:
    """The node on which a PCI device hangs; -1 where it is not known. NVML writes more digits than the kernel does."""
    domain, _, rest = bus_id.lower().partition(":")
    return number_in(root / "sys/bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node")


_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024
_FIELDS = {
    "PCIe received": (198, 0, 1.0),
    "PCIe sent": (197, 0, 1.0),
    "NVLink received": (139, _ALL_LINKS, float(_KIB)),
    "NVLink sent": (138, _ALL_LINKS, float(_KIB)),
}
"""Track → field (`NVML_FI_DEV_PCIE_COUNT_RX_BYTES`, …), scope, and bytes in one."""
_VALUES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of a field's union by its type, `nvmlValueType_t`."""


class NvidiaDevices(DeviceReaders):
    """What NVML tells of each device; a device's series are called as nvidia-smi numbers it."""

    def __init__(self, root: Path, indexes: Sequence[int]) -> None:
        """`indexes`: of the devices, as NVML counts them."""
        try:
            self._nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            raise NoSensorError("nvidia-ml-py is not installed: pip install 'deepscope[counters]'") from None
        self._root = root
        self._error: type[Exception] = self._nvml.NVMLError
        super().__init__((self._error,))
        try:
            self._nvml.nvmlInit()
        except self._error as error:
            raise NoSensorError(f"NVML: {error}") from None
        for index in indexes:
            try:
                self._open(str(index), self._nvml.nvmlDeviceGetHandleByIndex(index))
            except self._error as error:
                self.missing.append(MissingSensor(f"GPU {index}", str(error)))
        if not self.series:
            self.close()
            raise NoSensorError("NVML tells nothing of the devices")

    def _open(self, name: str, handle: Any) -> None:
        nvml = self._nvml
        self.devices.append(self._facts(name, handle))
        self._add(
            [Series("GPU busy", name), Series("GPU memory busy", name)],
            lambda: _utilisation(nvml.nvmlDeviceGetUtilizationRates(handle)),
        )
        singles: dict[str, Callable[[], float]] = {
            "GPU memory": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "GPU power": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "GPU SM clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "GPU memory clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "GPU temperature": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        }
        for track, read in singles.items():
            self._add([Series(track, name)], _single(read))
        self._add(
            [Series("GPU throttling", f"{name} {reason}", may_vanish=True) for reason in THROTTLE_REASONS],
            self._reasons(handle, "nvmlDeviceGetCurrentClocksEventReasons"),
            self._reasons(handle, "nvmlDeviceGetCurrentClocksThrottleReasons"),
        )
        self._add_links(name, handle)

    def _reasons(self, handle: Any, function: str) -> Reader:
        """The bits of `nvmlClocksEventReasons`; package and driver have the function under this name from 535 on."""

        def read() -> Sequence[float]:
            bits = getattr(self._nvml, function)(handle)
            return [float(bool(bits & mask)) for mask in THROTTLE_REASONS.values()]

        return read

    def _add_links(self, name: str, handle: Any) -> None:
        """Bytes that went over PCIe and NVLink since the driver was loaded.

        Drivers without the totals of PCIe measure it for 20 ms; that is no total.
        """
        nvml = self._nvml
        for track, (number, scope, scale) in _FIELDS.items():
            read = self._field(handle, number, scope)
            known = len(self.series)
            missing_before = len(self.missing)
            self._add([Series(track, name, is_total=True, scale=scale)], read)
            if len(self.series) == known and track.startswith("PCIe"):
                del self.missing[missing_before:]
                counter = nvml.NVML_PCIE_UTIL_RX_BYTES if "received" in track else nvml.NVML_PCIE_UTIL_TX_BYTES
                self._add([Series(track, name)], self._momentary(handle, counter))

    def _momentary(self, handle: Any, counter: int) -> Reader:
        return lambda: (float(self._nvml.nvmlDeviceGetPcieThroughput(handle, counter)) * _KIB,)

    def _field(self, handle: Any, number: int, scope: int) -> Reader:
        nvml = self._nvml

        def read() -> Sequence[float]:
            (found,) = nvml.nvmlDeviceGetFieldValues(handle, [(number, scope)])
            if found.nvmlReturn:
                raise nvml.NVMLError(found.nvmlReturn)
            return (float(getattr(found.value, _VALUES[found.valueType])),)

        return read

    def _facts(self, name: str, handle: Any) -> DeviceFacts:
        nvml = self._nvml
        bus_id = _text(self._query(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId, ""))
        threshold = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        return DeviceFacts(
            series=name,
            name=_text(self._query(lambda: nvml.nvmlDeviceGetName(handle), "")),
            bus_id=bus_id,
            numa_node=node_of_device(self._root, bus_id) if bus_id else -1,
            max_sm_mhz=self._query(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM), 0),
            max_memory_mhz=self._query(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM), 0),
            power_limit_w=self._query(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000, 0.0),
            slowdown_celsius=self._query(lambda: nvml.nvmlDeviceGetTemperatureThreshold(handle, threshold), 0),
        )

    def _query(self, ask: Callable[[], Value], otherwise: Value) -> Value:
        try:
            return ask()
        except (self._error, AttributeError):
            return otherwise

    def close(self) -> None:
        with suppress(self._error):
            self._nvml.nvmlShutdown()


def _single(read: Callable[[], float]) -> Reader:
    return lambda: (float(read()),)


def _utilisation(rates: Any) -> Sequence[float]:
    return float(rates.gpu), float(rates.memory)


def _text(value: Any) -> str:
    """Older versions of the package give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


_MIB = 1 << 20


class AmdDevices(DeviceReaders):
    """What amdsmi tells of each device; "N/A", which it says of what it does not know, is no number."""

    def __init__(self, root: Path, indexes: Sequence[int]) -> None:
        """`indexes`: of the devices, as amdsmi counts them."""
        try:
            self._smi: Any = importlib.import_module("amdsmi")
        except (ImportError, OSError, KeyError, AttributeError) as error:  # without its library it fails as it likes
            raise NoSensorError(f"amdsmi is not there (ROCm brings it): {error}") from None
        self._root = root
        self._error: type[Exception] = self._smi.AmdSmiException
        super().__init__((self._error,))
        try:
            self._smi.amdsmi_init()
            handles = self._smi.amdsmi_get_processor_handles()
        except self._error as error:
            raise NoSensorError(f"amdsmi: {error}") from None
        for index in indexes:
            if index < len(handles):
                self._open(str(index), handles[index])
            else:
                self.missing.append(MissingSensor(f"GPU {index}", f"amdsmi knows {len(handles)} devices"))
        if not self.series:
            self.close()
            raise NoSensorError("amdsmi tells nothing of the devices")

    def _open(self, name: str, handle: Any) -> None:
        smi = self._smi
        bus_id = self._query(lambda: str(smi.amdsmi_get_gpu_device_bdf(handle)))
        self.devices.append(
            DeviceFacts(
                series=name,
                name=self._query(lambda: str(smi.amdsmi_get_gpu_asic_info(handle)["market_name"])),
                bus_id=bus_id,
                numa_node=node_of_device(self._root, bus_id) if bus_id else -1,
                max_sm_mhz=int(self._query(lambda: str(self._clock(handle, "GFX")["max_clk"])) or 0),
                max_memory_mhz=int(self._query(lambda: str(self._clock(handle, "MEM")["max_clk"])) or 0),
            )
        )
        self._add([Series("GPU busy", name)], lambda: (float(smi.amdsmi_get_gpu_activity(handle)["gfx_activity"]),))
        self._add(
            [Series("GPU memory busy", name)], lambda: (float(smi.amdsmi_get_gpu_activity(handle)["umc_activity"]),)
        )
        self._add(
            [Series("GPU memory", name)], lambda: (float(smi.amdsmi_get_gpu_vram_usage(handle)["vram_used"]) * _MIB,)
        )
        self._add(
            [Series("GPU power", name)],
            lambda: (float(smi.amdsmi_get_power_info(handle)["current_socket_power"]),),
            lambda: (float(smi.amdsmi_get_power_info(handle)["average_socket_power"]),),
        )
        self._add([Series("GPU SM clock", name)], lambda: (float(self._clock(handle, "GFX")["clk"]),))
        self._add([Series("GPU memory clock", name)], lambda: (float(self._clock(handle, "MEM")["clk"]),))
        self._add(
            [Series("GPU temperature", name)],
            lambda: (self._temperature(handle, "HOTSPOT"),),
            lambda: (self._temperature(handle, "EDGE"),),
        )

    def _clock(self, handle: Any, kind: str) -> Any:
        """`clk` and `max_clk`, which older versions call `cur_clk` and the same."""
        found = self._smi.amdsmi_get_clock_info(handle, getattr(self._smi.AmdSmiClkType, kind))
        return {"clk": found["cur_clk"], **found} if "cur_clk" in found else found

    def _temperature(self, handle: Any, kind: str) -> float:
        smi = self._smi
        sensor = getattr(smi.AmdSmiTemperatureType, kind)
        return float(smi.amdsmi_get_temp_metric(handle, sensor, smi.AmdSmiTemperatureMetric.CURRENT))

    def _query(self, ask: Callable[[], str]) -> str:
        """A fact; "" where amdsmi does not know it."""
        with suppress(self._error, AttributeError, KeyError):
            found = ask()
            return "" if found == "N/A" else found
        return ""

    def close(self) -> None:
        with suppress(self._error):
            self._smi.amdsmi_shut_down()


MOST_PORTS = 16
_LANE_BYTES = 4


class Adapters:
    """The ports of InfiniBand adapters (RoCE ones, too)."""

    def __init__(self, root: Path) -> None:
        ports = sorted((root / "sys/class/infiniband").glob("*/ports/*/counters"))
        self.series: list[Series] = []
        self._files: list[KernelFile] = []
        for counters in ports[:MOST_PORTS]:
            name = f"{counters.parents[2].name} port {counters.parent.name}"
            try:
                files = [KernelFile(counters / "port_rcv_data"), KernelFile(counters / "port_xmit_data")]
            except NoSensorError:
                continue
            if any(math.isnan(_words(file)) for file in files):
                for file in files:
                    file.close()
                continue
            self._files += files
            self.series += [
                Series(track, name, is_total=True, scale=_LANE_BYTES)
                for track in ("InfiniBand received", "InfiniBand sent")
            ]
        if not self._files:
            raise NoSensorError(
                "adapters in /sys/class/infiniband do not count" if ports else "no adapter in /sys/class/infiniband"
            )

    def read(self) -> Sequence[float]:
        """Words of four bytes."""
        return [_words(file) for file in self._files]

    def close(self) -> None:
        for file in self._files:
            file.close()


def _words(file: KernelFile) -> float:
    """NaN for a port that does not count, or not at this moment: it says "N/A (no PMA)", or reading it fails."""
    try:
        return int(file.read())
    except (OSError, ValueError):
        return math.nan
