"""What recording costs: the same Lightning run without a profiler, with PyTorchProfiler, and with DeepScope.

Two models: a transformer whose step is mostly arithmetic, and a tiny network whose step is mostly Python. Each run is a
process of its own; the order turns from round to round; ratios compare runs of one round. Ratios of steps are of CPU
time: with one thread and an idle machine that is their wall time (the tables show both), and other work does not
disturb it. With `--accelerator gpu` they are of wall time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import Program, Sample, Spread, run_once
from results import Goal, Result, make_parser

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
    accelerator: str = "cpu"


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
    accelerator: str

    @property
    def compared_ms(self) -> list[float]:
        """What ratios are of."""
        return self.step_cpu_ms if self.accelerator == "cpu" else self.step_ms

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
            "accelerator": plan.accelerator,
            "folder": folder,
        }
        options = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        sample = run_once(Program(profiler, [python, str(_FIT), *options], {"DEEPSCOPE_CACHE_DIR": folder}))
        result = json.loads(Path(folder, "result.json").read_text())
        traces = [path for path in Path(folder).iterdir() if ".pt.trace.json" in path.name]
        trace_bytes = sum(path.stat().st_size for path in traces)
    flags = [(bool(before), bool(after)) for before, after in result["recording"]]
    times = result["fit_s"], result["step_ms"], result["step_cpu_ms"]
    fit = Fit(sample, *times, flags, result["saving"], trace_bytes, plan.accelerator)
    if not fit.outside:
        raise RuntimeError(f"{profiler}: no step is free of recording and saving; make more steps")
    if profiler != "none" and not (fit.active and fit.trace_bytes):
        raise RuntimeError(f"{profiler}: {len(fit.active)} steps recorded, {fit.trace_bytes} bytes of trace written")
    return fit


def active_ratio(over: str, under: str) -> Callable[[Round], float]:
    """Median active step of one over that of the other; without a profiler, the steps that the first one recorded."""

    def ratio(fits: Round) -> float:
        steps = fits[over].active
        below = fits[under].active or steps
        return median_ms(fits[over].compared_ms, steps) / median_ms(fits[under].compared_ms, below)

    return ratio


def outside_ratio(fits: Round) -> float:
    """Steps outside DeepScope's window over the same steps of the run without a profiler."""
    steps = fits["deep"].outside
    return median_ms(fits["deep"].compared_ms, steps) / median_ms(fits["none"].compared_ms, steps)


def added_ratio(number: Callable[[Fit], float]) -> Callable[[Round], float]:
    """Time that DeepScope adds to the run without a profiler, over the time that PyTorchProfiler with stacks adds."""
    return lambda fits: (
        (number(fits["deep"]) - number(fits["none"])) / (number(fits["torch-stacks"]) - number(fits["none"]))
    )


def transformer_goals(rounds: list[Round]) -> list[Goal]:
    fit_time = spread(rounds, added_ratio(lambda fit: fit.fit_s))
    process_time = spread(rounds, added_ratio(lambda fit: fit.sample.wall_s))
    cpu_time = spread(rounds, added_ratio(lambda fit: fit.sample.cpu_s))
    return [
        Goal("transformer: fit time added, DeepScope / with_stack", fit_time, at_most=0.1),
        Goal("transformer: process time added, DeepScope / with_stack", process_time, at_most=0.1),
        Goal("transformer: CPU time added, all processes, DeepScope / with_stack", cpu_time),
        Goal(
            "transformer: active step, DeepScope / with_stack",
            spread(rounds, active_ratio("deep", "torch-stacks")),
            at_most=1.0,
        ),
        Goal("transformer: active step, DeepScope / no profiler", spread(rounds, active_ratio("deep", "none"))),
        Goal("transformer: step outside the window, DeepScope / none", spread(rounds, outside_ratio), at_most=1.01),
    ]


def tiny_goals(rounds: list[Round], python: tuple[int, int]) -> list[Goal]:
    has_monitoring = python >= (3, 12)
    with_stack = spread(rounds, active_ratio("deep", "torch-stacks"))
    without = spread(rounds, active_ratio("deep", "torch"))
    return [
        Goal("tiny: active step, DeepScope / with_stack", with_stack, at_most=None if has_monitoring else 1.25),
        Goal("tiny: active step, DeepScope / torch without stacks", without, at_most=1.1 if has_monitoring else None),
        Goal("tiny: step outside the window, DeepScope / none", spread(rounds, outside_ratio), at_most=1.01),
    ]


def table(rounds: list[Round]) -> list[list[str]]:
    """A row a profiler, medians of the rounds; without a profiler the active steps are those that DeepScope records."""
    rows = [["", "process s", "CPU s", "fit s", "active step ms", "its CPU ms", "other step ms", "peak MB", "trace MB"]]
    for profiler, label in PROFILERS.items():
        fits = [fits[profiler] for fits in rounds]
        active = [fit.active or round_["deep"].active for fit, round_ in zip(fits, rounds, strict=True)]
        outside = [round_["deep"].outside for round_ in rounds]
        numbers = [
            [fit.sample.wall_s for fit in fits],
            [fit.sample.cpu_s for fit in fits],
            [fit.fit_s for fit in fits],
            [median_ms(fit.step_ms, steps) for fit, steps in zip(fits, active, strict=True)],
            [median_ms(fit.step_cpu_ms, steps) for fit, steps in zip(fits, active, strict=True)],
            [median_ms(fit.step_ms, steps) for fit, steps in zip(fits, outside, strict=True)],
            [fit.sample.peak_bytes / 1e6 for fit in fits],
            [fit.trace_bytes / 1e6 for fit in fits],
        ]
        formats = ["{:.2f}", "{:.2f}", "{:.2f}", "{:.3f}", "{:.3f}", "{:.3f}", "{:.0f}", "{:.1f}"]
        rows.append([label, *(form.format(statistics.median(n)) for form, n in zip(formats, numbers, strict=True))])
    return rows


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 5)
    parser.add_argument("--model", choices=["transformer", "tiny"], action="append", help="only this one")
    parser.add_argument("--accelerator", choices=["cpu", "gpu"], default="cpu", help="Lightning's (default cpu)")
    parser.add_argument("--steps", type=int, default=60, help="steps of the transformer (default 60)")
    parser.add_argument("--active", type=int, default=20, help="of them recorded (default 20)")
    parser.add_argument("--tiny-steps", type=int, default=600, help="steps of the tiny model (default 600)")
    parser.add_argument("--tiny-active", type=int, default=60, help="of them recorded (default 60)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="of torch's arithmetic, 0 for its default (default 1, so that no barrier waits for a core)",
    )
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    plans = [
        Plan("transformer", options.steps, options.active, options.threads, options.accelerator),
        Plan("tiny", options.tiny_steps, options.tiny_active, options.threads, options.accelerator),
    ]
    settings = {"repeats": options.repeats, "plans": [asdict(plan) for plan in plans]}
    result = Result.of("recording", options, settings)
    major, minor = result.versions["python"].split(".")[:2]
    for plan in plans:
        if options.model and plan.model not in options.model:
            continue
        rounds = run_rounds(options.python, plan, options.repeats, lambda text: print(text, file=sys.stderr))
        tiny = plan.model == "tiny"
        result.goals += tiny_goals(rounds, (int(major), int(minor))) if tiny else transformer_goals(rounds)
        title = f"{plan.model}: {plan.steps} steps, {plan.active} of them recorded; medians of {options.repeats}"
        result.tables[title] = table(rounds)
        result.samples[plan.model] = [{name: asdict(fit) for name, fit in fits.items()} for fits in rounds]
    for samples in result.samples.values():
        for fits in samples:
            for fit in fits.values():
                del fit["sample"]["output"]
    result.finish(options)


if __name__ == "__main__":
    main()
