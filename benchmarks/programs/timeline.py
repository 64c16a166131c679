"""A trace's timeline made (`--anew`: read, built, kept) or opened again, and asked; prints what was measured as JSON.

Seconds are those of the clock on the wall; where it says CPU, they are this process's own, which other work on the
machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from deepscope.analysis.ownership.attribution import attribute
from deepscope.dashboard.timeline.build import build_timeline
from deepscope.dashboard.timeline.columns import TimelineColumns
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.store.cache import load_columns, save_columns
from deepscope.store.files import single_file
from deepscope.trace.read import read_trace

T = TypeVar("T")
WIDTHS = (600, 1_400, 2_000)


def timed(work: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    start = clock()
    result = work()
    return result, clock() - start


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def asked(index: TimelineIndex, windows: int) -> dict[str, float]:
    """Windows anywhere and of any length (from a hundred-thousandth of the trace to all of it), and other questions."""
    head, dice = index.head(), random.Random(7)
    window_ms, window_cpu_ms, sizes = [], [], []
    for _ in range(windows + 20):
        length = head.end_ns * 10 ** -dice.uniform(0, 5)
        begin = dice.uniform(0, head.end_ns - length)
        pixels = dice.choice(WIDTHS)
        begun = time.process_time()
        window, seconds = timed(lambda: index.window(begin, begin + length, pixels))  # noqa: B023
        window_cpu_ms.append(1e3 * (time.process_time() - begun))
        window_ms.append(1e3 * seconds)
        sizes.append(len(msgspec.json.encode(window)))
    whole, _ = timed(lambda: index.window(0, head.end_ns, WIDTHS[-1]))
    if sum(sum(track.count) for track in whole.tracks) != head.slices:
        raise RuntimeError("the window of the whole does not hold all slices: there is nothing to measure")
    questions = {
        "whole_ms": lambda: index.window(0, head.end_ns, WIDTHS[-1]),
        "selection_ms": lambda: index.selection(0, head.end_ns),
        "selection_part_ms": lambda: index.selection(head.end_ns // 2, head.end_ns // 2 + head.end_ns // 50),
        "first_search_ms": lambda: index.search("gemm"),
        "search_ms": lambda: index.search("mm"),
        "details_ms": lambda: index.details(head.slices // 2),
    }
    measured = {name: 1e3 * timed(ask)[1] for name, ask in questions.items()}
    return {
        "slices": head.slices,
        "window_p50_ms": percentile(window_ms[20:], 50),
        "window_p95_ms": percentile(window_ms[20:], 95),
        "window_cpu_p95_ms": percentile(window_cpu_ms[20:], 95),
        "window_kb": max(sizes) / 1e3,
        **measured,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--windows", type=int, default=400)
    options = parser.parse_args()
    file = single_file(options.trace)
    if file is None:
        parser.error("a folder")
    measured: dict[str, float] = {}
    if options.anew:
        trace, measured["read_s"] = timed(lambda: read_trace(options.trace))
        begun = time.process_time()
        columns, measured["build_s"] = timed(lambda: build_timeline(attribute(trace)))
        measured["build_cpu_s"] = time.process_time() - begun
        _, measured["keep_s"] = timed(lambda: save_columns("timeline", file, columns, partial=False))
    kept, measured["open_s"] = timed(lambda: load_columns("timeline", file, TimelineColumns, partial=False))
    if kept is None:
        raise RuntimeError("it was not kept")
    print(json.dumps(measured | asked(TimelineIndex(kept), options.windows)))


if __name__ == "__main__":
    main()
