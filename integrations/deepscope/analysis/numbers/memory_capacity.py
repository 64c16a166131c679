"""What memory a device has, as Kineto lists its devices."""

from __future__ import annotations

from deepscope.trace.model import Trace

_CPU = 0  # torch's DeviceType
_MOST = 1 << 53


def capacity_bytes(trace: Trace, device_type: int, device_id: int) -> int:
    """The device's memory; 0 where the trace does not say, as of the CPU."""
    listed = trace.metadata.get("deviceProperties")
    for one in listed if isinstance(listed, list) and device_type != _CPU else ():
        if isinstance(one, dict) and one.get("id") == device_id:
            size = one.get("totalGlobalMem")
            return size if isinstance(size, int) and 0 < size < _MOST else 0
    return 0
