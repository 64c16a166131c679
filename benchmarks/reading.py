"""What reading costs: from a trace to DeepScope's line table, beside HTA's parse, torch-tb-profiler's load, and no more
than decoding.

Whole processes, cold: each starts anew and keeps no cache; the file is in the page cache for all alike. Two kinds of
trace: a recorded inference on a device, and a training with torch's stacks, shapes and memory, which is recorded here.
Three questions for each: 62 MB, over 430 MB made from it, and whether the time grows as the file does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Program, Runs, Spread, cpu_s, peak_bytes, run_once, run_rounds, wall_s
from results import RECORDED_TRACE, Goal, Result, make_parser

_HERE = Path(__file__).resolve().parent
_LABELS = {
    "deepscope": "deepscope report",
    "hta": "HTA parse",
    "tb": "torch-tb-profiler load",
    "typed": "typed decode alone",
}


@dataclass(frozen=True)
class Source:
    """A trace to read and to grow."""

    kind: str
    path: Path
    size_bytes: int
    """Uncompressed, as `larger_trace.py` writes one copy."""


def programs(python: str, trace: Path) -> dict[str, Program]:
    """The readers of one trace."""
    report = [python, "-m", "deepscope", "report", str(trace), "--format", "json"]
    readers = _HERE / "programs"
    return {
        "deepscope": Program("deepscope", report, {"DEEPSCOPE_CACHE_DIR": os.devnull}),
        "hta": Program("hta", [python, str(readers / "hta_parse.py"), str(trace)]),
        "tb": Program("tb", [python, str(readers / "tb_profiler_load.py"), str(trace)]),
        "typed": Program("typed", [python, str(readers / "typed_decode.py"), str(trace)]),
    }


def record_training(python: str, target: Path, steps: int) -> Path:
    """Records the training in a process of its own."""
    command = [python, str(_HERE / "programs" / "record_training.py"), str(target), "--steps", str(steps)]
    run_once(Program("record_training", command))
    return target


def grow(python: str, source: Path, target: Path, copies: int) -> Path:
    """Writes the larger trace in a process of its own, so that this one stays small."""
    command = [python, str(_HERE / "larger_trace.py"), str(source), str(target), "--copies", str(copies)]
    run_once(Program("larger_trace", command))
    return target


def progress(text: str) -> None:
    print(text, file=sys.stderr)


def check_copies(reports: dict[int, dict[str, Any]]) -> None:
    """The report of k copies must hold k times the device time of one, all of it at a line or at none.

    Raises:
        RuntimeError: it does not, so that the time taken would mean nothing.
    """
    for copies, report in reports.items():
        total = report["totals"]["device_ns"]
        placed = sum(line["self_device_ns"] for line in report["lines"]) + report["no_line"]["self_device_ns"]
        expected = copies * reports[1]["totals"]["device_ns"] if 1 in reports else total
        if total <= 0 or placed != total or total != expected:
            raise RuntimeError(f"{copies} copies: {total} ns of device time, {placed} placed, {expected} expected")


def comparison_rows(runs: Runs, megabytes: float) -> list[list[str]]:
    rows = [["", "wall s", "low to high", "CPU s", "peak MB", "MB/s"]]
    for name in runs.samples:
        time = runs.spread(name, wall_s)
        rows.append(
            [
                _LABELS[name],
                f"{time.median:.2f}",
                f"{time.low:.2f} to {time.high:.2f}",
                f"{runs.spread(name, cpu_s).median:.2f}",
                f"{runs.spread(name, peak_bytes).median / 1e6:.0f}",
                f"{megabytes / time.median:.0f}",
            ]
        )
    return rows


def comparison_goals(title: str, runs: Runs, times_faster: float) -> list[Goal]:
    goals = []
    for other in ("hta", "tb"):
        if other in runs.samples:
            goals += [
                Goal(
                    f"{title}: times faster than {_LABELS[other]}",
                    runs.ratio(other, "deepscope", wall_s),
                    at_least=times_faster,
                ),
                Goal(
                    f"{title}: peak memory / {_LABELS[other]}'s",
                    runs.ratio("deepscope", other, peak_bytes),
                    at_most=1 / 3,
                ),
            ]
    if "typed" in runs.samples:
        goals.append(
            Goal(f"{title}: CPU time / {_LABELS['typed']}'s", runs.ratio("deepscope", "typed", cpu_s), at_most=3)
        )
    return goals


def marginal_growth(sizes: list[float], times: list[list[float]]) -> Spread:
    """CPU time for each further MB at the large end over that at the small end, round by round; 1 is linear.

    `times` holds a list of rounds a size. Differences of times are free of the start-up.
    """
    small = [(later - earlier) / (sizes[1] - sizes[0]) for earlier, later in zip(times[0], times[1], strict=True)]
    large = [(later - earlier) / (sizes[-1] - sizes[-2]) for earlier, later in zip(times[-2], times[-1], strict=True)]
    return Spread.of([end / begin for begin, end in zip(small, large, strict=True)])


def compare(result: Result, options: argparse.Namespace, folder: Path, source: Source) -> None:
    """Both sizes, each beside the other tools, in each form asked for."""
    large_copies = max(1, math.ceil(options.large_mb * 1e6 / source.size_bytes))
    for copies, times_faster in [(1, 6.0), (large_copies, 10.0)]:
        for form in options.forms.split(","):
            trace = grow(options.python, source.path, folder / f"x{copies}.{form}", copies)
            plain_mb = copies * source.size_bytes / 1e6
            title = f"{source.kind}, {plain_mb:.0f} MB as {form}"
            readers = programs(options.python, trace)
            runs = run_rounds(list(readers.values()), options.repeats, warm_up=[trace], progress=progress)
            check_copies({copies: json.loads(runs.samples["deepscope"][0].output)})
            result.tables[f"{title}; medians of {options.repeats}"] = comparison_rows(runs, plain_mb)
            result.goals += comparison_goals(title, runs, times_faster)
            result.add_runs(title, runs)
            trace.unlink()


def measure_growth(result: Result, options: argparse.Namespace, folder: Path, source: Source) -> None:
    """DeepScope alone on 1, 2, 4, … copies."""
    counts = [int(count) for count in options.growth.split(",")]
    traces = {count: grow(options.python, source.path, folder / f"x{count}.json", count) for count in counts}
    readers = {count: programs(options.python, trace)["deepscope"] for count, trace in traces.items()}
    named = [Program(str(count), reader.command, reader.environment) for count, reader in readers.items()]
    runs = run_rounds(named, options.repeats, warm_up=list(traces.values()), progress=progress)
    check_copies({count: json.loads(runs.samples[str(count)][0].output) for count in counts})

    sizes = [traces[count].stat().st_size / 1e6 for count in counts]
    rows = [["copies", "MB", "wall s", "CPU s", "CPU ms per MB", "peak MB", "peak / size"]]
    for count, size in zip(counts, sizes, strict=True):
        time = runs.spread(str(count), wall_s).median
        memory = runs.spread(str(count), peak_bytes).median / 1e6
        spent = runs.spread(str(count), cpu_s).median
        cells = [f"{size:.0f}", f"{time:.2f}", f"{spent:.2f}", f"{1e3 * spent / size:.1f}"]
        rows.append([str(count), *cells, f"{memory:.0f}", f"{memory / size:.2f}"])
    result.tables[f"{source.kind}, growth of deepscope report; medians of {options.repeats}"] = rows

    times = [[sample.cpu_s for sample in runs.samples[str(count)]] for count in counts]
    growth = marginal_growth(sizes, times)
    memory_ratio = runs.spread(str(counts[-1]), lambda sample: sample.peak_bytes / (sizes[-1] * 1e6))
    title = f"{source.kind}, growth"
    result.goals.append(Goal(f"{title}: CPU time a further MB, last step of size / first", growth, at_most=1.1))
    result.goals.append(Goal(f"{title}: peak memory / size of the JSON, largest", memory_ratio, at_most=2.5))
    result.add_runs(title, runs)
    for trace in traces.values():
        trace.unlink()


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 5)
    parser.add_argument("--trace", type=Path, default=RECORDED_TRACE, help="recorded inference to read and to grow")
    parser.add_argument("--training-steps", type=int, default=18, help="steps of the training (default 18: some 62 MB)")
    parser.add_argument(
        "--large-mb", type=float, default=430, help="least size of the large trace, uncompressed (default 430)"
    )
    parser.add_argument("--kinds", default="inference,training", help="traces to read (default inference,training)")
    parser.add_argument("--forms", default="json.gz", help="how traces lie on disk: json.gz, json or both with a comma")
    parser.add_argument("--growth", default="1,2,4,8", help="copies for the growth (default 1,2,4,8)")
    parser.add_argument("--only", choices=["compare", "growth"], help="only this part")
    parser.add_argument("--work", type=Path, help="folder for the made traces (default the system's temporary one)")
    options = parser.parse_args()
    if "inference" in options.kinds and not options.trace.is_file():
        parser.error(f"no trace at {options.trace}; name one with --trace")
    return options


def main() -> None:
    options = parse_options()
    settings = {key: getattr(options, key) for key in ("repeats", "large_mb", "forms", "growth", "training_steps")}
    settings["trace"] = options.trace.name
    result = Result.of("reading", options, settings)
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-", dir=options.work) as name:
        folder = Path(name)
        for kind in options.kinds.split(","):
            path = options.trace
            if kind == "training":
                path = record_training(options.python, folder / "training.json", options.training_steps)
            one = grow(options.python, path, folder / "one.json", 1)
            source = Source(kind, path, one.stat().st_size)
            one.unlink()
            if options.only != "growth":
                compare(result, options, folder, source)
            if options.only != "compare":
                measure_growth(result, options, folder, source)
    result.finish(options)


if __name__ == "__main__":
    main()
