"""What a list of traces says of each: from its name and head, and from the cache where it was read before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepscope.store import cache
from deepscope.store.files import TraceFile
from deepscope.store.peek import peek
from deepscope_lsp.engine.discovery import TraceStamp

__all__ = ["describe"]


def describe(stamp: TraceStamp) -> dict[str, Any]:
    """One trace: `run` is shared by the traces of one run; device and commit are "" until it was read once."""
    file = TraceFile(stamp.path, stamp.size_bytes, stamp.mtime_ns)
    head = peek(file)
    kept = cache.load(file, step=None, partial=False)
    info = kept.trace if kept is not None else None
    folder = str(Path(stamp.path).parent)
    return {
        "path": stamp.path,
        "name": file.name,
        "sizeBytes": stamp.size_bytes,
        "recordedNs": stamp.time_ns,
        "run": f"{folder}#{head.run_id or head.worker_pattern}",
        "rank": head.rank if head.rank is not None else (info.ranks[0] if info is not None and info.ranks else None),
        "stage": head.stage or (info.stage if info is not None else ""),
        "device": info.device if info is not None else "",
        "commit": info.git_commit if info is not None else "",
    }
