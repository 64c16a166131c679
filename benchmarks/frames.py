"""Frames a second of the dashboard's timeline at a million slices: zooming and panning in Chromium, beside the server.

A recorded trace is repeated until it has a million slices (`larger_trace.py`); `deepscope view` serves it. Each frame
of each motion has to be drawn anew. The time between two frames counts; 16.7 ms is the most that 60 a second allow. On
a busy machine frames are late for others' sake; the processor's time of a frame tells what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from larger_trace import write_larger_trace
from measure import Spread
from results import RECORDED_TRACE, Goal, Result, make_parser

_HERE = Path(__file__).resolve().parent
_FRAME_MS = 1000 / 60
_TOLERANCE = 1.02  # a screen's own clock is no more exact


@contextmanager
def served(trace: Path, folder: Path) -> Iterator[str]:
    """The address of the trace's dashboard; caches are empty."""
    command = [sys.executable, "-m", "deepscope", "view", str(trace), "--no-browser"]
    environment = {**os.environ, "DEEPSCOPE_CACHE_DIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def frames(url: str, chromium: str, seconds: float) -> dict[str, Any]:
    """What the browser measured: times between frames by motion, in milliseconds, and the script's part of them."""
    command = ["node", str(_HERE / "programs" / "frames.mjs"), url, chromium, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the browser failed: {done.stderr[-2000:]}")
    taken: dict[str, Any] = json.loads(done.stdout)
    return taken


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


def add_motions(result: Result, runs: Sequence[dict[str, Any]]) -> None:
    names = list(runs[0]["frames"])
    rows = [["", "frames a second", "median", "p95", "p99", "script, median", "script, p95"]]
    for name in names:
        between = [ms for run in runs for ms in run["frames"][name]["intervals"]]
        work = [ms for run in runs for ms in run["frames"][name]["work"]]
        figures = [1000 * len(between) / sum(between), statistics.median(between), percentile(between, 0.95)]
        figures += [percentile(between, 0.99), statistics.median(work), percentile(work, 0.95)]
        rows.append([name, *(f"{figure:.1f}" for figure in figures)])
    result.tables["time between frames, ms"] = rows
    for thread, words in (("page", "the page's thread"), ("compositor", "the compositor's thread")):
        for part, what in ((0.5, "median"), (0.95, "p95")):
            taken = [percentile(run["cpu"][thread], part) for run in runs]
            claim = f"processor time of a frame on {words}, {what}, ms"
            result.goals.append(Goal(claim, Spread.of(taken), at_most=_FRAME_MS))
    for part, what in ((0.5, "median"), (0.95, "p95")):
        of_runs = [percentile([ms for name in names for ms in run["frames"][name]["intervals"]], part) for run in runs]
        limit = _FRAME_MS * _TOLERANCE if part == 0.5 else None
        result.goals.append(Goal(f"time between frames, {what}, ms", Spread.of(of_runs), at_most=limit))
    per_second = [
        1000 * sum(len(run["frames"][name]["intervals"]) for name in names)
        / sum(sum(run["frames"][name]["intervals"]) for name in names)
        for run in runs
    ]  # fmt: skip
    result.goals.append(Goal("frames a second", Spread.of(per_second), at_least=60 / _TOLERANCE))


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 3, interpreter=False)
    parser.add_argument("--trace", type=Path, default=RECORDED_TRACE, help="what is repeated")
    parser.add_argument("--copies", type=int, default=5, help="how often (default 5: a million slices of the default)")
    parser.add_argument("--seconds", type=float, default=4, help="of each motion (default 4)")
    parser.add_argument("--chromium", default=os.environ.get("DEEPSCOPE_E2E_CHROMIUM") or shutil.which("chromium"))
    options = parser.parse_args()
    if not options.chromium:
        parser.error("no chromium is on the path; name one with --chromium")
    return options


def main() -> None:
    options = parse_options()
    settings = {"trace": options.trace.name, "copies": options.copies, "repeats": options.repeats}
    settings |= {"seconds": options.seconds}
    result = Result.of("frames of the timeline", options, settings)
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as name:
        folder = Path(name)
        trace = folder / "large.pt.trace.json.gz"
        write_larger_trace(options.trace, trace, options.copies)
        with served(trace, folder / "cache") as url:
            start = time.perf_counter()
            frames(url, options.chromium, 0.1)  # reads the trace, which does not count
            first_s = time.perf_counter() - start
            runs = [frames(url, options.chromium, options.seconds) for _ in range(options.repeats)]
    result.settings = {**settings, "slices": runs[0]["slices"]}
    add_motions(result, runs)
    shown = Spread.of([run["shown_ms"] / 1000 for run in runs])
    result.goals.append(Goal("from the address to the timeline, read before, s", shown))
    result.goals.append(Goal("the first time, with reading the trace, s", Spread.of([first_s])))
    result.samples["runs"] = runs
    result.finish(options)


if __name__ == "__main__":
    main()
