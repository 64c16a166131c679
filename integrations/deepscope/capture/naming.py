"""File names as TensorBoard's plug-in wants them, with stage and rank in the worker's name."""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path

__all__ = [
    "RAW_SUFFIX",
    "WORKERS_PREFIX",
    "clean",
    "host_name",
    "job_path",
    "owned",
    "owner_of",
    "owner_of_workers",
    "raw_path",
    "remove_raw",
    "trace_path",
    "worker_name",
    "workers_prefix",
]

RAW_SUFFIX = ".deepscope-raw"
WORKERS_PREFIX = "deepscope-workers-"
_OWNED = re.compile(r"(?P<stem>\..+)@(?P<host>[^@]+)@(?P<pid>\d{1,10})\.deepscope-raw")
_OWNED_WORKERS = re.compile(r"deepscope-workers-(?P<host>.+)-(?P<pid>\d{1,10})-[^-]*")


def worker_name(name: str | None, stage: str, rank: int) -> str:
    """`<name or host_pid>[.<stage>].rank<R>`, in letters that every file system and TensorBoard take."""
    base = name or f"{socket.gethostname()}_{os.getpid()}"
    parts = [base, stage] if stage else [base]
    return ".".join([*(clean(part) for part in parts), f"rank{rank}"])


def clean(word: str) -> str:
    """`word` in letters that every file system and TensorBoard take."""
    return re.sub(r"[^\w.-]+", "_", word, flags=re.ASCII).strip("._") or "worker"


def trace_path(folder: Path, worker: str, *, compress: bool) -> Path:
    """A name that no trace in `folder` has."""
    suffix = ".pt.trace.json.gz" if compress else ".pt.trace.json"
    while True:
        path = folder / f"{worker}.{time.time_ns()}{suffix}"
        if not path.exists():
            return path


def raw_path(trace: Path) -> Path:
    """Where torch's own export lies until it is rewritten; TensorBoard does not take it for a trace.

    The name says which process it is of, so that others can tell whether it was left behind.
    """
    stem = trace.name.partition(".pt.trace.json")[0]
    return trace.with_name(f".{stem}@{host_name()}@{os.getpid()}{RAW_SUFFIX}")


def host_name() -> str:
    """The name of this host, in letters of a file's name."""
    return clean(socket.gethostname())


def owner_of(raw: Path) -> tuple[str, int] | None:
    """Host and process that an export is of; None for a file of another name."""
    found = _OWNED.fullmatch(raw.name)
    return (found["host"], int(found["pid"])) if found is not None else None


def owned(raw: Path) -> Path:
    """The name that an export has in this process's hands."""
    found = _OWNED.fullmatch(raw.name)
    assert found is not None
    return raw.with_name(f"{found['stem']}@{host_name()}@{os.getpid()}{RAW_SUFFIX}")


def job_path(path: Path) -> Path:
    """Where it is written down what is to be made of an export; `path` is that of the export, or of its trace."""
    found = _OWNED.fullmatch(path.name)
    stem = found["stem"] if found is not None else f".{path.name.partition('.pt.trace.json')[0]}"
    return path.with_name(f"{stem}.deepscope-job")


def workers_prefix() -> str:
    """How the name of this process's folder for its data-loader workers begins."""
    return f"{WORKERS_PREFIX}{host_name()}-{os.getpid()}-"


def owner_of_workers(folder: Path) -> tuple[str, int] | None:
    """Host and process that a folder for workers is of; None for a folder of another name."""
    found = _OWNED_WORKERS.fullmatch(folder.name)
    return (found["host"], int(found["pid"])) if found is not None else None


def remove_raw(raw: Path) -> None:
    """Remove an export, what was to be made of it, and what Kineto leaves of one that it could not finish."""
    for path in (raw, raw.with_name(f"{raw.name}.tmp"), job_path(raw)):
        with suppress(OSError):
            path.unlink()
