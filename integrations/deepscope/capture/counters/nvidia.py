"""NVIDIA's GPUs, by NVML (nvidia-ml-py; https://docs.nvidia.com/deploy/nvml-api)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from deepscope.capture.counters.numa import node_of_device
from deepscope.capture.counters.source import DeviceReaders, NoSensorError, Reader, Series
from deepscope.trace.format.counters import THROTTLE_REASONS, DeviceFacts, MissingSensor

Value = TypeVar("Value")

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
        """Lets go of NVML; others in the process count their own use of it."""
        with suppress(self._error):
            self._nvml.nvmlShutdown()


def _single(read: Callable[[], float]) -> Reader:
    return lambda: (float(read()),)


def _utilisation(rates: Any) -> Sequence[float]:
    return float(rates.gpu), float(rates.memory)


def _text(value: Any) -> str:
    """Older versions of the package give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
