"""How fast the dashboard's timeline answers: windows at any zoom of traces of a million events and more.

Goals for windows and for making are of CPU time, which other work on the machine disturbs less; nothing waits in them.
Each round is two processes: one reads the trace, makes its timeline and keeps it; the other opens the kept one. Windows
lie anywhere and are of any length, for screens 600 to 2,000 pixels wide.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import sys
import tempfile
from pathlib import Path

from larger_trace import write_larger_trace
from measure import Program, Spread, run_once
from results import RECORDED_TRACE, Goal, Result, make_parser

_HERE = Path(__file__).resolve().parent
_PROGRAM = _HERE / "programs" / "timeline.py"
_SHOWN = {
    "read_s": "read, s",
    "build_s": "timeline made of it, s",
    "build_cpu_s": "the same, CPU s",
    "keep_s": "kept, s",
    "open_s": "opened again, s",
    "window_p50_ms": "window, p50, ms",
    "window_p95_ms": "window, p95, ms",
    "window_cpu_p95_ms": "the same, CPU ms",
    "window_kb": "largest answer, kB",
    "whole_ms": "window of the whole, ms",
    "selection_ms": "selection of the whole, ms",
    "selection_part_ms": "selection of a fiftieth, ms",
    "first_search_ms": "first search, ms",
    "search_ms": "search, ms",
    "details_ms": "details of a slice, ms",
}


def measure(trace: Path, options: argparse.Namespace) -> tuple[dict[str, list[float]], list[float], list[float]]:
    """Each figure by round (those of questions from the process that opened it again), peaks and kept sizes in MB."""
    found: dict[str, list[float]] = {}
    peaks, sizes = [], []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as cache:
            told = {}
            for words in (["--anew"], []):
                command = [sys.executable, str(_PROGRAM), str(trace), *words, "--windows", str(options.windows)]
                done = run_once(Program("timeline", command, {"DEEPSCOPE_CACHE_DIR": cache}))
                told |= json.loads(done.output)
                peaks.append(done.peak_bytes / 1e6)
            sizes.append(sum(path.stat().st_size for path in Path(cache).rglob("*.timeline")) / 1e6)
        for name, value in told.items():
            found.setdefault(name, []).append(value)
    return found, peaks[::2], sizes


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, 3, interpreter=False)
    parser.add_argument("--trace", type=Path, default=RECORDED_TRACE, help="recorded trace to grow")
    parser.add_argument("--events", default="1000000,5000000", help="sizes, in events (default 1000000,5000000)")
    parser.add_argument("--windows", type=int, default=400, help="windows that are asked for in each (default 400)")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    settings = {"trace": options.trace.name, "repeats": options.repeats, "windows": options.windows}
    result = Result.of("timeline", options, settings)
    content = options.trace.read_bytes()
    text = gzip.decompress(content) if options.trace.suffix == ".gz" else content
    events = len(re.findall(rb'"ph": ?"X"', text))
    columns: list[list[str]] = [["", *_SHOWN.values(), "peak while it is made, MB", "kept, MB"]]
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as name:
        for wanted in map(int, options.events.split(",")):
            trace = Path(name) / f"{wanted}.pt.trace.json.gz"
            write_larger_trace(options.trace, trace, max(1, math.ceil(wanted / events)))
            found, peaks, sizes = measure(trace, options)
            trace.unlink()
            spreads = {key: Spread.of(found[key]) for key in _SHOWN}
            million = found["slices"][0] / 1e6
            title = f"{found['slices'][0] / 1e6:.2f} million slices"
            made = Spread.of([seconds / million for seconds in found["build_cpu_s"]])
            result.goals += [
                Goal(f"{title}: window, p95, CPU ms", spreads["window_cpu_p95_ms"], at_most=30),
                Goal(f"{title}: largest answer, kB", spreads["window_kb"], at_most=300),
                Goal(f"{title}: made after reading, CPU s a million", made, at_most=1),
                Goal(f"{title}: opened again, s", spreads["open_s"], at_most=0.2),
            ]
            figures = [f"{spread.median:.3g}" for spread in (*spreads.values(), Spread.of(peaks), Spread.of(sizes))]
            columns.append([title, *figures])
            result.samples[title] = found
    result.tables[f"timeline (median of {options.repeats})"] = [list(row) for row in zip(*columns, strict=True)]
    result.finish(options)


if __name__ == "__main__":
    main()
