"""Whole processes side by side: wall time, CPU time and peak memory of each, in alternating order."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

_PAUSE_S = 0.05
# Linux reports KiB, macOS bytes (getrusage(2) of each).
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Program:
    """One command to measure; `environment` is added to this process's own."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One run of one program; `cpu_s` and `peak_bytes` count the child processes that it waited for."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str


@dataclass(frozen=True)
class Spread:
    """The middle and the ends of some measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Runs:
    """Samples by program name; entry r of each list is from round r."""

    samples: Mapping[str, Sequence[Sample]]

    def spread(self, name: str, number: Callable[[Sample], float]) -> Spread:
        return Spread.of([number(sample) for sample in self.samples[name]])

    def ratio(self, name: str, other: str, number: Callable[[Sample], float]) -> Spread:
        """`name` over `other`, each round against itself, so that a slow spell of the machine hits both."""
        pairs = zip(self.samples[name], self.samples[other], strict=True)
        return Spread.of([number(mine) / number(theirs) for mine, theirs in pairs])


def wall_s(sample: Sample) -> float:
    """What ratios and tables take of a sample: its wall time."""
    return sample.wall_s


def cpu_s(sample: Sample) -> float:
    """Its CPU time."""
    return sample.cpu_s


def peak_bytes(sample: Sample) -> float:
    """Its peak of memory."""
    return sample.peak_bytes


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that so many per cent of the others lie below."""
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def run_once(program: Program) -> Sample:
    """Runs the program to its end.

    The peak is the kernel's own (`ru_maxrss` of the child). It starts at this process's size at the time of the fork,
    so this process must stay small: it never imports torch or holds a trace.

    Raises:
        RuntimeError: the program failed; the message holds the end of what it wrote to stderr.
    """

    def waited(child: subprocess.Popen[bytes]) -> tuple[float, float]:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT

    return _run(program, waited)


def run_tree(program: Program) -> Sample:
    """Runs the program to its end; `peak_bytes` is the largest sum over its processes, looked at 20 times a second.

    Of pages that processes share each counts its part (PSS), where the system tells it.

    Raises:
        RuntimeError: the program failed; the message holds the end of what it wrote to stderr.
    """

    def waited(child: subprocess.Popen[bytes]) -> tuple[float, float]:
        before_s, process, peak = _children_cpu_s(), psutil.Process(child.pid), 0
        while child.poll() is None:
            peak = max(peak, _looked_at(process))
            time.sleep(_PAUSE_S)
        return _children_cpu_s() - before_s, peak

    return _run(program, waited)


def run_for_result(name: str, command: Sequence[str]) -> tuple[dict[str, Any], Sample]:
    """What a program wrote to `result.json` in the new `--folder` that it is given, which holds its cache, too."""
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        sample = run_once(Program(name, [*command, "--folder", folder], {"DEEPSCOPE_CACHE_DIR": folder}))
        result: dict[str, Any] = json.loads(Path(folder, "result.json").read_text())
        return result, sample


def _run(program: Program, wait: Callable[[subprocess.Popen[bytes]], tuple[float, float]]) -> Sample:
    """Runs it; `wait` waits for its end, and tells CPU seconds and the peak in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        child = subprocess.Popen(list(program.command), stdout=out, stderr=err, env=environment(program))
        spent_s, peak = wait(child)
        taken_s = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            tail = err.read().decode(errors="replace")[-4000:]
            raise RuntimeError(f"{program.name}: exit code {child.returncode}: {' '.join(program.command)}\n{tail}")
        return Sample(taken_s, spent_s, int(peak), out.read().decode(errors="replace"))


def _children_cpu_s() -> float:
    """Of all processes that have ended, with those that they waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _looked_at(top: psutil.Process) -> int:
    size = 0
    with suppress(psutil.Error):
        for process in [top, *top.children(recursive=True)]:
            with suppress(psutil.Error):
                memory = process.memory_full_info()
                size += getattr(memory, "pss", 0) or memory.rss
    return size


def environment(program: Program) -> dict[str, str]:
    """This process's own, but that byte code is kept, as it is of every installed package; with the program's."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, **program.environment}


def run_rounds(
    programs: Sequence[Program],
    repeats: int,
    *,
    warm_up: Sequence[Path] = (),
    run: Callable[[Program], Sample] = run_once,
    progress: Callable[[str], None] = lambda _: None,
) -> Runs:
    """Runs each program once a round, the order turned round by round, after one round that does not count.

    The uncounted round fills the page cache, and the byte code of every package, for all alike; `warm_up` files are
    read through before it. `run` measures one program.
    """
    for path in warm_up:
        _read_through(path)
    samples: dict[str, list[Sample]] = {program.name: [] for program in programs}
    for round_number in range(-1, repeats):
        shift = round_number % len(programs)
        for program in [*programs[shift:], *programs[:shift]]:
            sample = run(program)
            if round_number >= 0:
                samples[program.name].append(sample)
            round_name = "warm-up" if round_number < 0 else f"round {round_number + 1}"
            progress(f"{round_name}  {program.name}: {sample.wall_s:.2f} s")
    return Runs(samples)


def _read_through(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass
