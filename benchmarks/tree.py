"""The memory of a program with all processes that it starts, while it runs."""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from contextlib import suppress

import psutil
from measure import Program, Sample, environment

__all__ = ["run_tree"]

_PAUSE_S = 0.05


def run_tree(program: Program) -> Sample:
    """Runs the program to its end; `peak_bytes` is the largest sum over its processes, looked at 20 times a second.

    Of pages that processes share each counts its part (PSS), where the system tells it.

    Raises:
        RuntimeError: the program failed; the message holds the end of what it wrote to stderr.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start, cpu_s = time.perf_counter(), _cpu_s()
        child = subprocess.Popen(list(program.command), stdout=out, stderr=err, env=environment(program))
        process, peak = psutil.Process(child.pid), 0
        while child.poll() is None:
            peak = max(peak, _looked_at(process))
            time.sleep(_PAUSE_S)
        wall_s = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            tail = err.read().decode(errors="replace")[-4000:]
            raise RuntimeError(f"{program.name}: exit code {child.returncode}: {' '.join(program.command)}\n{tail}")
        return Sample(wall_s, _cpu_s() - cpu_s, peak, out.read().decode(errors="replace"))


def _cpu_s() -> float:
    """Of all processes that have ended, with those that they waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _looked_at(top: psutil.Process) -> int:
    size = 0
    with suppress(psutil.Error):
        for process in [top, *top.children(recursive=True)]:
            with suppress(psutil.Error):
                told = process.memory_full_info()
                size += getattr(told, "pss", 0) or told.rss
    return size
