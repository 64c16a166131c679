"""AMD's GPUs, by amdsmi, which ROCm brings (https://rocm.docs.amd.com/projects/amdsmi)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from deepscope.capture.counters.numa import node_of_device
from deepscope.capture.counters.source import DeviceReaders, NoSensorError, Series
from deepscope.trace.format.counters import DeviceFacts, MissingSensor

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
        """Lets go of the library."""
        with suppress(self._error):
            self._smi.amdsmi_shut_down()
