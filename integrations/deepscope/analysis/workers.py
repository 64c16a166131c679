"""What DeepScope timed in data-loader worker processes (docs/trace-format.md, `workers`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deepscope.trace.model import Trace

__all__ = ["WorkerLine", "worker_lines"]

_LIMIT = 2**53
"""What a line number and a time can be, so that sums over many stay exact."""


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """CPU time that one worker spent on one line, over the whole window."""

    file: str
    line: int
    function: str
    self_ns: int


def worker_lines(trace: Trace) -> list[WorkerLine]:
    """The lines of all workers, not yet summed by line; rows that are not as the format has them are left out."""
    own = trace.deepscope or {}
    workers, files = own.get("workers"), own.get("files")
    if not isinstance(workers, list) or not isinstance(files, list):
        return []
    return [line for worker in workers if isinstance(worker, dict) for line in _lines(worker.get("lines"), files)]


def _lines(rows: object, files: list[Any]) -> Iterator[WorkerLine]:
    for row in rows if isinstance(rows, list) else []:
        match row:
            case [int(file), int(line), str(function), int(self_ns), *_] if (
                0 <= file < len(files) and 0 < line < _LIMIT and 0 <= self_ns < _LIMIT
            ):
                path = files[file].get("path") if isinstance(files[file], dict) else None
                if isinstance(path, str):
                    yield WorkerLine(path, line, function, self_ns)
