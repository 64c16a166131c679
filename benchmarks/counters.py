"""What sampling the machine's counters costs: CPU time of its thread, and small steps with it and without it.

Steps with and without sampling take turns in one process, some hundred of each at a time, so that what else the machine
does meets both. A step is pure Python, which holds the interpreter's lock all the time: the worst that a thread beside
it can meet.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from machine import describe_machine, describe_python
from measure import Spread
from results import Goal, Result

from deepscope.capture.counters.machine import Machine
from deepscope.capture.counters.sampler import Sampler
from deepscope.trace.format.counters import CounterAccount


def step(size: int) -> float:
    """Some Python, in milliseconds on the wall."""
    began = time.perf_counter_ns()
    total = 0
    for number in range(size):
        total += number * number % 7
    return (time.perf_counter_ns() - began) / 1e6


def turn(seconds: float, size: int, sampler: Sampler | None) -> tuple[list[float], CounterAccount | None, float]:
    """Steps of one turn, what the sampler says, and how long the turn took."""
    if sampler is not None:
        sampler.begin()
    began = time.perf_counter()
    steps = []
    while time.perf_counter() - began < seconds:
        steps.append(step(size))
    took = time.perf_counter() - began
    account = None if sampler is None else sampler.end()().account
    return steps, account, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--interval", type=float, default=0.1)
    parser.add_argument("--size", type=int, default=10_000, help="turns of the loop in a step; 10,000 are about 1 ms")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sampler = Sampler(Machine, interval_s=options.interval)
    turn(options.seconds, options.size, sampler)  # imports what the sources need
    shares, means, tails, sample_ms = [], [], [], []
    for _ in range(options.repeats):
        without, _, _ = turn(options.seconds, options.size, None)
        sampled, account, took = turn(options.seconds, options.size, sampler)
        if account is None:
            sys.exit("nothing could be counted here")
        shares.append(account.cost_ns / 1e9 / took)
        sample_ms.append(account.cost_ns / 1e6 / account.samples)
        means.append(statistics.mean(sampled) / statistics.mean(without))
        tails.append(statistics.quantiles(sampled, n=100)[98] / statistics.quantiles(without, n=100)[98])
    result = Result(
        benchmark="counters",
        machine=describe_machine(),
        versions=describe_python(sys.executable),
        settings={"interval_s": options.interval, "seconds": options.seconds, "repeats": options.repeats},
        goals=[
            Goal("CPU time of the sampling thread, share of a core", Spread.of(shares), at_most=0.01),
            Goal("a sample, ms of CPU time", Spread.of(sample_ms)),
            Goal("mean step, with sampling / without", Spread.of(means)),
            Goal("99th percentile of steps, with sampling / without", Spread.of(tails)),
        ],
        tables={},
        samples={"share": shares, "mean": means, "p99": tails},
    )
    result.print()
    if options.json:
        result.write_json(options.json)


if __name__ == "__main__":
    main()
