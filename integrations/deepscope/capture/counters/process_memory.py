"""Memory of this process, and what is left for it on the host and in its container (proc(5))."""

from __future__ import annotations

import os
from pathlib import Path

from deepscope.capture.counters.container import free_in_groups
from deepscope.capture.counters.source import text_of


def resident_bytes(root: Path) -> int:
    """Memory of this process; 0 where the system does not say."""
    return _resident(root)[0]


def unmapped_bytes(root: Path) -> int:
    """The same without files that are mapped and memory that processes share."""
    resident, shared = _resident(root)
    return resident - shared


def _resident(root: Path) -> tuple[int, int]:
    """All that is resident, and its part of files and of memory that is shared."""
    fields = text_of(root / "proc/self/statm").split()[1:3]
    if len(fields) < 2 or not all(field.isdigit() for field in fields):
        return 0, 0
    resident, shared = (int(field) * os.sysconf("SC_PAGE_SIZE") for field in fields)
    return resident, shared


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that can be had without swapping, on the host and in a container; much where that is not known."""
    words = text_of(root / "proc/meminfo").partition("MemAvailable:")[2].split()
    on_host = int(words[0]) << 10 if words and words[0].isdigit() else 1 << 62
    return min([on_host, *free_in_groups(root)])
