"""What DeepScope timed in data-loader worker processes (docs/trace-format.md, `workers`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepscope.trace.model import Trace

HAS_WORKERS = re.compile(r"^enumerate\(DataLoader\)#.*MultiProcessing")
HAS_NO_WORKERS = re.compile(r"^enumerate\(DataLoader\)#.*SingleProcess")
"""How torch's loaders name the span around each batch, and those derived from them (torchdata's)."""


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """What one worker spent on one line, over the whole window."""

    file: str
    line: int
    function: str
    self_ns: int
    cpu_ns: int
    """The part of it on the CPU; 0 in traces that do not know it."""


def worker_lines(trace: Trace) -> list[WorkerTime]:
    """The lines of all workers, not yet summed by line; those of files that the trace does not name are left out."""
    header = trace.header
    return [
        WorkerTime(path, line.line, line.function, line.self_ns, min(line.cpu_ns, line.self_ns))
        for worker in header.workers
        for line in worker.lines
        if (path := header.path_of(line.file))
    ]


def worker_count(trace: Trace) -> int:
    """How many workers the loader has, the largest where there are several; 0 where the trace does not know."""
    return max((worker.num_workers for worker in trace.header.workers), default=0)
