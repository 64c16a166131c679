"""What the lines of libraries cost: a Hugging Face GPT-2 under torch's profiler and under DeepScope, with and without.

Needs `transformers`; `--packages` names a folder that `pip install --target` has put it into. Each run is a process of
its own, the order turns from round to round, and ratios compare medians of active steps (CPU time of the training
thread) within a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from machine import describe_machine, describe_python
from measure import Program, Spread, run_once
from results import Goal, Result

RECORDERS = {
    "torch": "torch, without stacks",
    "torch-stacks": "torch, with_stack=True",
    "deep-off": "DeepScope, libraries off",
    "deep-hot": "DeepScope, libraries hot",
}
MODELS = {"small": (4, 128, 4, 64), "GPT-2": (12, 768, 1, 64)}
"""Layers, width, batch, tokens."""
_RUN = Path(__file__).resolve().parent / "programs" / "gpt2.py"

Round = dict[str, list[float]]
"""Active steps by recorder, in milliseconds."""


def run_round(options: argparse.Namespace, model: str, shift: int) -> Round:
    names = list(RECORDERS)
    found: Round = {}
    for name in [*names[shift:], *names[:shift]]:
        with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
            sizes = zip(("layers", "width", "batch", "tokens"), MODELS[model], strict=True)
            values = {"recorder": name, "folder": folder, "active": options.active, **dict(sizes)}
            words = [word for key, value in values.items() for word in (f"--{key}", str(value))]
            environment = {"DEEPSCOPE_CACHE_DIR": folder}
            if options.packages:
                environment["PYTHONPATH"] = options.packages
            run_once(Program(name, [options.python, str(_RUN), *words], environment))
            found[name] = json.loads(Path(folder, "result.json").read_text())
        print(f"{model}, {RECORDERS[name]}: {statistics.median(found[name]):.2f} ms", file=sys.stderr)
    return found


def ratio(rounds: list[Round], over: str, under: str, of: Callable[[list[float]], float]) -> Spread:
    return Spread.of([of(found[over]) / of(found[under]) for found in rounds])


def goals(model: str, rounds: list[Round], python: tuple[int, int]) -> list[Goal]:
    """The limits are for the small model, whose step is mostly Python."""
    is_monitored, is_small = python >= (3, 12), model == "small"
    median: Callable[[list[float]], float] = statistics.median
    limits = {"torch": 1.1 if is_monitored and is_small else None,
              "torch-stacks": 1.25 if not is_monitored and is_small else None}  # fmt: skip
    found = [
        Goal(
            f"{model}: active step, libraries hot / {RECORDERS[name]}",
            ratio(rounds, "deep-hot", name, median),
            at_most=limit,
        )
        for name, limit in limits.items()
    ]
    off = ratio(rounds, "deep-hot", "deep-off", median)
    found.append(Goal(f"{model}: active step, libraries hot / {RECORDERS['deep-off']}", off))
    first = ratio(rounds, "deep-hot", "torch", lambda steps: sum(steps[:3]))
    return [*found, Goal(f"{model}: first 3 active steps, libraries hot / {RECORDERS['torch']}", first)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="rounds that count, after one that does not (default 5)")
    parser.add_argument("--python", default=sys.executable, help="interpreter to measure (default this one)")
    parser.add_argument("--packages", default="", help="folder that has `transformers`")
    parser.add_argument("--active", type=int, default=20, help="recorded steps (default 20)")
    parser.add_argument("--model", choices=list(MODELS), action="append", help="only this one")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    options = parser.parse_args()
    versions = describe_python(options.python)
    major, minor = (versions["python"] or "").split(".")[:2]
    settings = {"repeats": options.repeats, "active": options.active}
    result = Result("libraries", describe_machine(), versions, settings, [], {}, {})
    for model in options.model or MODELS:
        run_round(options, model, 0)
        rounds = [run_round(options, model, number % len(RECORDERS)) for number in range(options.repeats)]
        result.goals += goals(model, rounds, (int(major), int(minor)))
        medians = [statistics.median(statistics.median(one[name]) for one in rounds) for name in RECORDERS]
        rows = [[label, f"{ms:.2f}"] for label, ms in zip(RECORDERS.values(), medians, strict=True)]
        result.tables[f"{model}: active step, medians of {options.repeats}"] = [["", "CPU ms"], *rows]
        result.samples[model] = rounds
    result.print()
    if options.json:
        result.write_json(options.json)


if __name__ == "__main__":
    main()
