"""What ranks side by side cost: time and memory of `deepscope ranks` as the ranks become more, beside HTA.

The ranks are made from a real one by `tests/synthetic_ranks`, with stragglers and clocks that are known; what
`deepscope ranks` says of them is checked. Whole processes run in turn, each with all processes that it starts: once
reading the traces (no cache), once with every profile in the cache, and HTA's `TraceAnalysis` with the analyses of
each rank's time, on as many ranks as asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import Program, Runs, Spread, cpu_s, peak_bytes, run_once, run_rounds, run_tree, wall_s
from results import Goal, Result, make_parser

_HERE = Path(__file__).resolve().parent
_TESTS = str(_HERE.parent / "tests")
_LABELS = {"read": "deepscope ranks", "cached": "the same, cached", "hta": "HTA"}


def make(python: str, folder: Path, ranks: int, options: argparse.Namespace) -> dict[str, Any]:
    """The traces of so many ranks, and what is known of them; in a process of its own."""
    told = {"ranks": ranks, "source": options.trace, "steps": options.steps, "collectives": options.collectives}
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    path = os.pathsep.join(filter(None, (_TESTS, os.environ.get("PYTHONPATH"))))
    command = [python, "-m", "synthetic_ranks", str(folder), *words]
    run_once(Program("synthetic_ranks", command, {"PYTHONPATH": path}))
    return json.loads((folder.parent / f"{folder.name}.truth.json").read_text())  # type: ignore[no-any-return]


def programs(python: str, traces: Path, cache: Path, ranks: int, most_for_hta: int) -> list[Program]:
    """What is run on one folder."""
    command = [python, "-m", "deepscope", "ranks", str(traces), "--format", "json"]
    kept = {"DEEPSCOPE_CACHE_DIR": str(cache)}
    found = [Program("read", command, {"DEEPSCOPE_CACHE_DIR": os.devnull}), Program("cached", command, kept)]
    if ranks <= most_for_hta:
        found.append(Program("hta", [python, str(_HERE / "programs" / "hta_ranks.py"), str(traces)]))
    return found


def found_share(report: dict[str, Any], truth: dict[str, Any]) -> tuple[float, list[str]]:
    """Which part of the planted stragglers the report names with cause and line, and what it says of the others."""
    told = {one["rank"]: one for one in report["stragglers"]}
    wrong = []
    for planted in truth["stragglers"]:
        one = told.get(planted["rank"])
        if one is None:
            wrong.append(f"rank {planted['rank']} ({planted['cause']}): not named")
        elif one["cause"] != planted["cause"]:
            wrong.append(f"rank {planted['rank']} ({planted['cause']}): named as {one['cause'] or 'of no cause'}")
        elif planted["file"] and (one["file"], one["line"]) != (planted["file"], planted["line"]):
            wrong.append(f"rank {planted['rank']} ({planted['cause']}): line {one['file']}:{one['line']}")
    count = len(truth["stragglers"])
    return (1 - len(wrong) / count if count else 1.0), wrong


def check(report: dict[str, Any], ranks: int) -> None:
    """Raises RuntimeError unless every rank was read, so that the time taken means something."""
    read = [row["rank"] for row in report["ranks"]]
    if read != list(range(ranks)) or report["failures"] or not all(row["compute_ns"] > 0 for row in report["ranks"]):
        raise RuntimeError(f"{len(read)} of {ranks} ranks were read, {len(report['failures'])} failed")


def rows_of(runs: Runs, ranks: int, megabytes: float) -> list[list[str]]:
    rows = []
    for name in runs.samples:
        time, memory = runs.spread(name, wall_s), runs.spread(name, peak_bytes)
        rows.append([f"{ranks} ranks, {_LABELS[name]}", f"{megabytes:.0f}", f"{time.median:.2f}",
                     f"{time.low:.2f} to {time.high:.2f}", f"{1e3 * runs.spread(name, cpu_s).median / ranks:.0f}",
                     f"{memory.median / 1e6:.0f}"])  # fmt: skip
    return rows


def measure(result: Result, options: argparse.Namespace, work: Path) -> None:
    """Each size in turn; its traces are removed before the next one's are made."""
    sizes = [int(size) for size in options.sizes.split(",")]
    rows = [["", "MB", "wall s", "low to high", "CPU ms a rank", "peak MB, all processes"]]
    all_runs: dict[int, Runs] = {}
    for ranks in sizes:
        traces, cache = work / f"ranks{ranks}", work / f"cache{ranks}"
        truth = make(options.python, traces, ranks, options)
        megabytes = sum(path.stat().st_size for path in traces.iterdir()) / 1e6
        named = programs(options.python, traces, cache, ranks, options.hta)
        runs = run_rounds(named, options.repeats, run=run_tree, progress=lambda text: print(text, file=sys.stderr))
        all_runs[ranks] = runs
        rows += rows_of(runs, ranks, megabytes)
        report = json.loads(runs.samples["read"][0].output)
        check(report, ranks)
        if truth["stragglers"]:
            share, wrong = found_share(report, truth)
            result.goals.append(
                Goal(
                    f"{ranks} ranks: planted stragglers found with cause and line",
                    Spread(share, share, share),
                    at_least=1,
                )
            )
            result.samples[f"{ranks} ranks, not found"] = wrong
        if "hta" in runs.samples:
            result.goals += [
                Goal(f"{ranks} ranks: times faster than HTA", runs.ratio("hta", "read", wall_s), at_least=1),
                Goal(f"{ranks} ranks: peak memory / HTA's", runs.ratio("read", "hta", peak_bytes), at_most=1 / 3),
            ]
        result.add_runs(f"{ranks} ranks", runs)
        if not options.keep:
            shutil.rmtree(traces)
        shutil.rmtree(cache, ignore_errors=True)
    result.tables[f"ranks side by side; medians of {options.repeats}"] = rows
    result.goals += growth(all_runs)


def growth(all_runs: dict[int, Runs]) -> list[Goal]:
    """How time and memory grow from the second size to the last: by the first, programs still start."""
    sizes = sorted(all_runs)[-3:]
    if len(sizes) < 2:
        return []
    small, large = sizes[0], sizes[-1]
    goals = []
    for name, label in (("read", "reading"), ("cached", "cached")):
        times = [all_runs[size].spread(name, cpu_s).median / size for size in (small, large)]
        memory = [all_runs[size].spread(name, peak_bytes).median for size in (small, large)]
        ratio, further = times[1] / times[0], (memory[1] - memory[0]) / (large - small) / 1e6
        limit = 1.1 if name == "read" else None
        goals += [
            Goal(f"{label}: CPU time a rank, {large} ranks / {small}", Spread(ratio, ratio, ratio), at_most=limit),
            Goal(f"{label}: MB of memory a further rank, from {small} to {large}", Spread(further, further, further),
                 at_most=1),
        ]  # fmt: skip
    return goals


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 3)
    default = _HERE.parents[1] / "shared" / "traces" / "astra-sim-megatron-tp8-megatron_kineto_0.json.gz"
    parser.add_argument("--trace", type=Path, default=default, help="the rank that the others are made from")
    parser.add_argument("--sizes", default="8,64,256,1024", help="ranks, powers of two (default 8,64,256,1024)")
    parser.add_argument("--hta", type=int, default=64, help="most ranks that HTA is given (default 64)")
    parser.add_argument("--steps", type=int, default=3, help="of each trace (default 3)")
    parser.add_argument("--collectives", type=int, default=16, help="of each step (default 16)")
    parser.add_argument("--work", type=Path, help="folder for the made traces (default the system's temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the traces in --work")
    parser.add_argument("--quick", action="store_true", help="a tiny size, once: that it runs, not what it costs")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.sizes, options.hta, options.steps, options.collectives = 1, "2,4", 2, 1, 8
    if not options.trace.is_file():
        parser.error(f"no trace at {options.trace}; name one with --trace")
    return options


def main() -> None:
    options = parse_options()
    settings = {key: getattr(options, key) for key in ("repeats", "sizes", "hta", "steps", "collectives")}
    settings["trace"] = options.trace.name
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    result = Result.of("ranks", options, settings)
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-", dir=options.work) as name:
        measure(result, options, options.work if options.keep and options.work else Path(name))
    result.finish(options)


if __name__ == "__main__":
    main()
