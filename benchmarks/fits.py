"""Lightning runs under each profiler, round by round, each in a process of its own."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Program, Sample, Spread, run_once

__all__ = ["PROFILERS", "Fit", "Plan", "Round", "median_ms", "run_rounds", "spread"]

PROFILERS = {
    "none": "no profiler",
    "torch": "PyTorchProfiler",
    "torch-stacks": "PyTorchProfiler(with_stack=True)",
    "deep": "DeepProfiler",
}
_FIT = Path(__file__).resolve().parent / "programs" / "fit.py"
_FIRST_STEPS = 3  # not counted: memory is taken and kernels are chosen in them


@dataclass(frozen=True)
class Plan:
    """One model, how many steps it makes, and how many of them, in the middle, are recorded."""

    model: str
    steps: int
    active: int
    threads: int


@dataclass(frozen=True)
class Fit:
    """One run, as seen from outside (`sample`) and by its own clocks."""

    sample: Sample
    fit_s: float
    step_ms: list[float]
    step_cpu_ms: list[float]
    recording: list[tuple[bool, bool]]
    """Whether events were recorded at each step's start, and at its end."""
    saving: list[bool]
    """Whether the trace was being saved beside each step."""
    trace_bytes: int

    @property
    def active(self) -> list[int]:
        """Steps recorded from their start to their end."""
        return [number for number, flags in enumerate(self.recording) if all(flags)]

    @property
    def outside(self) -> list[int]:
        """Steps with no recording or saving beside them nor in the step before and after, where windows are prepared.

        What saving costs the steps beside it is in the time of the fit.
        """
        quiet = [not any(flags) and not saving for flags, saving in zip(self.recording, self.saving, strict=True)]
        return [number for number in range(_FIRST_STEPS, len(quiet) - 1) if all(quiet[number - 1 : number + 2])]


Round = dict[str, Fit]
"""A run of each profiler, in turn."""


def median_ms(times: Sequence[float], steps: Sequence[int]) -> float:
    """The median over the steps with these numbers."""
    return statistics.median(times[number] for number in steps)


def run_rounds(python: str, plan: Plan, repeats: int, progress: Callable[[str], None]) -> list[Round]:
    """`repeats` rounds after one that does not count; the order turns from round to round."""
    names = list(PROFILERS)
    rounds: list[Round] = []
    for number in range(-1, repeats):
        shift = number % len(names)
        fits: Round = {}
        for profiler in [*names[shift:], *names[:shift]]:
            fits[profiler] = _run(python, plan, profiler)
            round_name = "warm-up" if number < 0 else f"round {number + 1}"
            progress(f"{round_name}  {plan.model}, {PROFILERS[profiler]}: {fits[profiler].sample.wall_s:.2f} s")
        if number >= 0:
            rounds.append(fits)
    return rounds


def spread(rounds: list[Round], number: Callable[[Round], float]) -> Spread:
    """One number of each round."""
    return Spread.of([number(fits) for fits in rounds])


def _run(python: str, plan: Plan, profiler: str) -> Fit:
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        values = {
            "model": plan.model,
            "profiler": profiler,
            "steps": plan.steps,
            "active": plan.active,
            "threads": plan.threads,
            "folder": folder,
        }
        options = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        sample = run_once(Program(profiler, [python, str(_FIT), *options], {"DEEPSCOPE_CACHE_DIR": folder}))
        result = json.loads(Path(folder, "result.json").read_text())
        traces = [path for path in Path(folder).iterdir() if ".pt.trace.json" in path.name]
        trace_bytes = sum(path.stat().st_size for path in traces)
    flags = [(bool(before), bool(after)) for before, after in result["recording"]]
    fit = Fit(sample, result["fit_s"], result["step_ms"], result["step_cpu_ms"], flags, result["saving"], trace_bytes)
    if not fit.outside:
        raise RuntimeError(f"{profiler}: no step is free of recording and saving; make more steps")
    if profiler != "none" and not (fit.active and fit.trace_bytes):
        raise RuntimeError(f"{profiler}: {len(fit.active)} steps recorded, {fit.trace_bytes} bytes of trace written")
    return fit
