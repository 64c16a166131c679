"""What the figures were measured on: processor, memory, system and versions, and nothing that names the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

__all__ = ["describe_machine", "describe_python"]

_VERSIONS = """
import importlib.metadata, json, platform
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
names = ["torch", "lightning", "HolisticTraceAnalysis", "torch-tb-profiler", "numpy", "msgspec", "isal", "pygls"]
print(json.dumps({"python": platform.python_version(), **{name: version(name) for name in names}}))
"""


def describe_machine() -> dict[str, str | int | float]:
    """Processor, cores that this process may use, memory in GiB, system, and how many other programs were running."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
    }


def describe_python(python: str) -> dict[str, str | None]:
    """The interpreter's version and those of the packages that are measured with it."""
    done = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    versions: dict[str, str | None] = json.loads(done.stdout)
    return versions


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
