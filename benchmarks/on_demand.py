"""What a dormant recorder costs: steps of one loop with and without it, in pairs whose order turns.

A step's CPU time on the training thread counts, so that other work on the machine does not; wall time stands beside it.
The tiny model's step is all Python and next to no arithmetic, where anything per step shows most.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from machine import describe_machine, describe_python
from measure import Spread
from results import Goal, Result


def models() -> dict[str, tuple[Callable[[], object], int]]:
    """A training step by the model's name, and how many of its steps make a block."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)

    def step_of(net: nn.Module, batch: torch.Tensor) -> Callable[[], object]:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

        def step() -> None:
            loss = net(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    tiny = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    transformer = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    return {
        "tiny": (step_of(tiny, torch.randn(4, 8)), 50),
        "transformer": (step_of(transformer, torch.randn(8, 32, 128)), 2),
    }


def block(step: Callable[[], object], steps: int) -> tuple[float, float]:
    """CPU seconds of this thread, and wall seconds, of a step; those right behind the change do not count."""
    for _ in range(max(2, steps // 5)):
        step()
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(steps):
        step()
    return (time.thread_time() - cpu) / steps, (time.perf_counter() - wall) / steps


Pair = tuple[float, float, float, float]


def measured(step: Callable[[], object], steps: int, pairs: int, folder: Path) -> list[Pair]:
    """CPU and wall seconds of a step with a dormant recorder, then without, of each pair of blocks."""
    import deepscope

    def without() -> tuple[float, float]:
        return block(step, steps)

    def dormant() -> tuple[float, float]:
        with deepscope.on_demand(folder):
            return block(step, steps)

    for _ in range(3):
        without(), dormant()
    found = []
    for number in range(pairs):
        if number % 2:
            second = without()
            first = dormant()
        else:
            first = dormant()
            second = without()
        found.append((*first, *second))
    return found


def interval(ratios: list[float]) -> Spread:
    """The median, and where it lies in 19 of 20 such experiments, by the order of the ratios."""
    ordered = sorted(ratios)
    half = 0.98 * len(ordered) ** 0.5
    low = ordered[max(0, round(len(ordered) / 2 - half))]
    high = ordered[min(len(ordered) - 1, round(len(ordered) / 2 + half))]
    return Spread(statistics.median(ordered), low, high)


def one_boundary_ns(folder: Path) -> float:
    """Nanoseconds of CPU time that a dormant recorder does at a step."""
    import deepscope

    with deepscope.on_demand(folder) as door:
        door.step()
        runs = 100_000
        began = time.thread_time_ns()
        for _ in range(runs):
            door.dormant.step()
        return (time.thread_time_ns() - began) / runs


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=400, help="pairs of blocks (default 400)")
    parser.add_argument("--quick", action="store_true", help="20 pairs")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    parser.add_argument("--folder", type=Path, default=Path("deepscope_logs"), help="where traces would go")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    pairs = 20 if options.quick else options.pairs
    result = Result("on_demand", describe_machine(), describe_python(sys.executable), {"pairs": pairs}, [], {}, {})
    rows = [["", "CPU ms", "dormant", "wall ms", "dormant"]]
    for name, (step, steps) in models().items():
        found = measured(step, steps, pairs, options.folder)
        cpu, wall, cpu_without, wall_without = (statistics.median(column) * 1e3 for column in zip(*found, strict=True))
        rows.append([name, *(f"{number:.4f}" for number in (cpu_without, cpu, wall_without, wall))])
        ratio = interval([one[0] / one[2] for one in found])
        result.goals.append(Goal(f"{name}: CPU time of a step, dormant / without", ratio, at_most=1.01))
        result.goals.append(Goal(f"{name}: wall time", interval([one[1] / one[3] for one in found])))
        result.samples[name] = found
    own = one_boundary_ns(options.folder)
    result.goals.append(Goal("what a dormant recorder does at a step, ns", Spread(own, own, own), at_most=2_000))
    result.tables[f"a training step; medians of {pairs} pairs"] = rows
    result.print()
    if options.json:
        result.write_json(options.json)


if __name__ == "__main__":
    main()
