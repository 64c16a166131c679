"""Runs whose true times are known: each step takes each line's own time, with noise of steps and of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepscope.analysis.build import build_profile
from deepscope.records import Profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

__all__ = ["FILE", "noisy_times", "profile_of_run", "simulated"]

FILE = "/job/train.py"
Times = Mapping[int, Sequence[int]]
"""Line → its device time in each step."""


def noisy_times(
    lines: Mapping[int, float], rng: np.random.Generator, *, steps: int = 5, spread: float = 0.05, run: float = 0.0
) -> Times:
    """Normal noise of `spread` in each step and of `run` in the whole run, as shares of a line's time."""
    shift = max(0.1, 1 + run * rng.standard_normal())
    return {
        line: [max(1, round(ns * shift * (1 + spread * rng.standard_normal()))) for _ in range(steps)]
        for line, ns in lines.items()
    }


def simulated(
    times: Times,
    *,
    text: str | None = None,
    file: str = FILE,
    root: str = "/job",
    functions: Mapping[int, str] | None = None,
    **header: Any,
) -> TraceBuilder:
    """The trace of a run in which each line launches one kernel a step, back to back; `header` is DeepScope's."""
    own: dict[str, Any] = {"version": "0", "project_root": root, **header}
    builder = TraceBuilder(deepscope=own)
    at = 0
    for step in range(max(map(len, times.values()))):
        begin = at
        for line, values in times.items():
            if step < len(values):
                builder.line(file, line, (functions or {}).get(line, "train"), at, values[step] + 10)
                builder.module(f"Layer{line}", f"layers.{line}", at, values[step] + 10)
                builder.op(f"aten::op_{line}", at + 1, values[step] + 8)
                builder.kernel(f"kernel_{line}", at + 2, at + 5, values[step])
                at += values[step] + 10
        builder.step(step + 3, begin, at - begin)
    if text is not None:
        for recorded in builder.files:
            recorded["text"] = text
    return builder


def profile_of_run(folder: Path, times: Times, **more: Any) -> Profile:
    """The profile of such a run."""
    return build_profile(read_trace(simulated(times, **more).write(folder / "run.json")))
