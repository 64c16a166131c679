"""What DeepScope timed in data-loader worker processes (docs/trace-format.md, `workers`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deepscope.trace.model import Trace

__all__ = ["HAS_NO_WORKERS", "HAS_WORKERS", "WorkerLine", "worker_count", "worker_lines"]

HAS_WORKERS = re.compile(r"^enumerate\(DataLoader\)#.*MultiProcessing")
HAS_NO_WORKERS = re.compile(r"^enumerate\(DataLoader\)#.*SingleProcess")
"""How torch's loaders name the span around each batch, and those derived from them (torchdata's)."""

_LIMIT = 2**53
"""What a line number and a time can be, so that sums over many stay exact."""


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """What one worker spent on one line, over the whole window."""

    file: str
    line: int
    function: str
    self_ns: int
    cpu_ns: int
    """The part of it on the CPU; 0 in traces that do not know it."""


def worker_lines(trace: Trace) -> list[WorkerLine]:
    """The lines of all workers, not yet summed by line; rows that are not as the format has them are left out."""
    files = (trace.deepscope or {}).get("files")
    if not isinstance(files, list):
        return []
    return [line for worker in _workers(trace) for line in _lines(worker.get("lines"), files)]


def worker_count(trace: Trace) -> int:
    """How many workers the loader has, the largest where there are several; 0 where the trace does not know."""
    counts = [worker.get("num_workers") for worker in _workers(trace)]
    return max((count for count in counts if isinstance(count, int) and 0 < count < _LIMIT), default=0)


def _workers(trace: Trace) -> list[dict[str, Any]]:
    workers = (trace.deepscope or {}).get("workers")
    return [worker for worker in workers if isinstance(worker, dict)] if isinstance(workers, list) else []


def _lines(rows: object, files: list[Any]) -> Iterator[WorkerLine]:
    for row in rows if isinstance(rows, list) else []:
        match row:
            case [int(file), int(line), str(function), int(self_ns), *more] if (
                0 <= file < len(files) and 0 < line < _LIMIT and 0 <= self_ns < _LIMIT
            ):
                path = files[file].get("path") if isinstance(files[file], dict) else None
                cpu_ns = more[1] if len(more) > 1 and isinstance(more[1], int) else 0
                if isinstance(path, str):
                    yield WorkerLine(path, line, function, self_ns, min(max(cpu_ns, 0), self_ns))
