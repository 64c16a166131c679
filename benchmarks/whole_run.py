"""What a step of a plain loop costs more because the time of its whole run is accounted for.

The loop goes over a `DataLoader` whose batches are there already and does nothing else, unwatched and watched by turns,
in one process. Times are the thread's CPU time, which other programs disturb least.
"""

from __future__ import annotations

import argparse
import statistics
from time import thread_time_ns
from typing import Any

import torch
from measure import Spread
from results import Goal, Result, make_parser
from torch.utils.data import DataLoader

from deepscope.capture.whole_run.run_watch import RunWatch

_STEPS = 2000


def step_us(loader: DataLoader[Any], watch: RunWatch | None) -> float:
    """The time of a step without any work, over one pass."""
    began_ns = thread_time_ns()
    for _ in loader:
        if watch is not None:
            watch.end_step()
            watch.give_to_recording(0)
    return (thread_time_ns() - began_ns) / _STEPS / 1e3


def medians_us(loader: DataLoader[Any], passes: int) -> tuple[float, float]:
    """Of unwatched steps, and of watched ones."""
    unwatched, watched = [], []
    for _ in range(passes):
        unwatched.append(step_us(loader, None))
        watch = RunWatch().listen()
        watched.append(step_us(loader, watch))
        watch.close()
    return statistics.median(unwatched), statistics.median(watched)


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 5, interpreter=False)
    parser.add_argument("--passes", type=int, default=15, help="passes of each kind in a round (default 15)")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    torch.set_num_threads(1)
    loader = DataLoader(torch.ones(_STEPS, 1), batch_size=None)
    medians_us(loader, 1)  # warms up
    rounds = [medians_us(loader, options.passes) for _ in range(options.repeats)]
    result = Result.of("whole_run", options, {"steps": _STEPS, "passes": options.passes})
    cost = Spread.of([watched - unwatched for unwatched, watched in rounds])
    result.goals.append(Goal("what a step costs more, µs (1 % of a step of 1 ms)", cost, at_most=10.0))
    table = [["round", "unwatched", "watched", "cost"]]
    table += [[str(number), *(f"{us:.2f}" for us in (*pair, pair[1] - pair[0]))] for number, pair in enumerate(rounds)]
    result.tables["µs of CPU a step"] = table
    result.samples["rounds"] = rounds
    result.finish(options)


if __name__ == "__main__":
    main()
