"""File names as TensorBoard's plug-in wants them, with stage and rank in the worker's name."""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["raw_path", "remove_raw", "trace_path", "worker_name"]


def worker_name(name: str | None, stage: str, rank: int) -> str:
    """`<name or host_pid>[.<stage>].rank<R>`, in letters that every file system and TensorBoard take."""
    base = name or f"{socket.gethostname()}_{os.getpid()}"
    parts = [base, stage] if stage else [base]
    return ".".join([*(_clean(part) for part in parts), f"rank{rank}"])


def _clean(word: str) -> str:
    return re.sub(r"[^\w.-]+", "_", word, flags=re.ASCII).strip("._") or "worker"


def trace_path(folder: Path, worker: str, *, compress: bool) -> Path:
    """A name that no trace in `folder` has."""
    suffix = ".pt.trace.json.gz" if compress else ".pt.trace.json"
    while True:
        path = folder / f"{worker}.{time.time_ns()}{suffix}"
        if not path.exists():
            return path


def raw_path(trace: Path) -> Path:
    """Where torch's own export lies until it is rewritten; TensorBoard does not take it for a trace."""
    stem = trace.name.partition(".pt.trace.json")[0]
    return trace.with_name(f".{stem}.deepscope-raw")


def remove_raw(raw: Path) -> None:
    """Remove an export, and what Kineto leaves of one that it could not finish."""
    for path in (raw, raw.with_name(f"{raw.name}.tmp")):
        with suppress(OSError):
            path.unlink()
