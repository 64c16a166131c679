"""Stand-ins for `pynvml` (nvidia-ml-py 13) and `amdsmi` (7.0): their functions' names, arguments and results.

What they tell is set by the test. A name that the real package does not have is none here, either, so that code which
calls one fails: `test_the_stand_in_has_no_name_of_its_own` holds them against nvidia-ml-py where that is installed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As the real one says it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return {3: "Not Supported", 9: "Driver Not Loaded", 15: "GPU is lost"}.get(self.value, "Unknown Error")


NOT_SUPPORTED = 3


class Nvml:
    """A module of one or more devices of the same kind."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1

    def __init__(self, *, unknown: tuple[str, ...] = (), fields: dict[int, int] | None = None) -> None:
        self.unknown = unknown
        """Functions that this device does not support."""
        self.fields = {197: 1000, 198: 2000, 138: 10, 139: 20} if fields is None else fields
        self.sm_mhz, self.reasons, self.lost = 1980, 0, False
        self.opened = 0

    def _say(self, function: str, value: Any) -> Any:
        if self.lost:
            raise NVMLError(15)
        if function in self.unknown:
            raise NVMLError(NOT_SUPPORTED)
        return value

    def nvmlInit(self) -> None:
        self._say("nvmlInit", None)
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return self._say("nvmlDeviceGetHandleByIndex", SimpleNamespace(index=index))

    def nvmlDeviceGetName(self, handle: Any) -> str:
        return self._say("nvmlDeviceGetName", "NVIDIA H100 80GB HBM3")

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        return self._say("nvmlDeviceGetPciInfo", SimpleNamespace(busId="00000000:1B:00.0"))

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        return self._say("nvmlDeviceGetUtilizationRates", SimpleNamespace(gpu=87, memory=34))

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:
        return self._say("nvmlDeviceGetMemoryInfo", SimpleNamespace(total=80 << 30, free=60 << 30, used=20 << 30))

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:
        return self._say("nvmlDeviceGetPowerUsage", 612_500)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> int:
        return self._say("nvmlDeviceGetEnforcedPowerLimit", 700_000)

    def nvmlDeviceGetClockInfo(self, handle: Any, type: int) -> int:  # noqa: A002
        return self._say("nvmlDeviceGetClockInfo", {1: self.sm_mhz, 2: 2619}[type])

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, type: int) -> int:  # noqa: A002
        return self._say("nvmlDeviceGetMaxClockInfo", {1: 1980, 2: 2619}[type])

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:
        return self._say("nvmlDeviceGetTemperature", {0: 71}[sensor])

    def nvmlDeviceGetTemperatureThreshold(self, handle: Any, threshold: int) -> int:
        return self._say("nvmlDeviceGetTemperatureThreshold", {1: 89}[threshold])

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any) -> int:
        return self._say("nvmlDeviceGetCurrentClocksEventReasons", self.reasons)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:
        return self._say("nvmlDeviceGetCurrentClocksThrottleReasons", self.reasons)

    def nvmlDeviceGetPcieThroughput(self, device: Any, counter: int) -> int:
        return self._say("nvmlDeviceGetPcieThroughput", {0: 50, 1: 70}[counter])

    def nvmlDeviceGetFieldValues(self, handle: Any, fieldIds: list[Any]) -> list[Any]:
        self._say("nvmlDeviceGetFieldValues", None)
        return [self._field(*field) for field in fieldIds]

    def _field(self, number: int, scope: int) -> Any:
        known = number in self.fields and (number >= 197 or scope == 0xFFFFFFFF)
        value = SimpleNamespace(ullVal=self.fields.get(number, 0))
        return SimpleNamespace(nvmlReturn=0 if known else NOT_SUPPORTED, valueType=3, value=value)


class AmdSmiException(Exception):
    pass


class Amd:
    """A module of so many devices; what is in `unknown` is "N/A"."""

    AmdSmiException = AmdSmiException
    AmdSmiClkType = enum.Enum("AmdSmiClkType", ["GFX", "MEM"])
    AmdSmiTemperatureType = enum.Enum("AmdSmiTemperatureType", ["EDGE", "HOTSPOT"])
    AmdSmiTemperatureMetric = enum.Enum("AmdSmiTemperatureMetric", ["CURRENT"])

    def __init__(self, count: int = 2, unknown: tuple[str, ...] = ()) -> None:
        self.count, self.unknown = count, unknown
        self.ends: Callable[[], None] = lambda: None

    def _told(self, **values: Any) -> dict[str, Any]:
        return {name: "N/A" if name in self.unknown else value for name, value in values.items()}

    def amdsmi_init(self) -> None:
        if self.count == 0:
            raise AmdSmiException("no driver")

    def amdsmi_shut_down(self) -> None:
        self.ends()

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(self.count))

    def amdsmi_get_gpu_device_bdf(self, processor_handle: int) -> str:
        return "0000:c1:00.0"

    def amdsmi_get_gpu_asic_info(self, processor_handle: int) -> dict[str, Any]:
        return self._told(market_name="AMD Instinct MI300X")

    def amdsmi_get_gpu_activity(self, processor_handle: int) -> dict[str, Any]:
        return self._told(gfx_activity=91, umc_activity=40, mm_activity="N/A")

    def amdsmi_get_gpu_vram_usage(self, processor_handle: int) -> dict[str, Any]:
        return {"vram_total": 196592, "vram_used": 1024}

    def amdsmi_get_power_info(self, processor_handle: int) -> dict[str, Any]:
        return self._told(current_socket_power=700, average_socket_power=690, power_limit=750)

    def amdsmi_get_clock_info(self, processor_handle: int, clock_type: Any) -> dict[str, Any]:
        return {"GFX": {"clk": 2100, "max_clk": 2100}, "MEM": {"clk": 1300, "max_clk": 1300}}[clock_type.name]

    def amdsmi_get_temp_metric(self, processor_handle: int, sensor_type: Any, metric: Any) -> int:
        if sensor_type.name in self.unknown:
            raise AmdSmiException("not supported")
        return {"HOTSPOT": 77, "EDGE": 66}[sensor_type.name]
