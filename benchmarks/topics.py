"""What each topic of a recording costs: active steps and size of the trace, over those of the operators alone.

The step is that of a small transformer with an optimizer that loops over parameters, so it is mostly Python. A round is
a process, in which all sets are recorded one after another, `minimal` once more at first; the order turns from round to
round, and ratios compare medians within a round (CPU time of the training thread).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from measure import Program, Spread, run_once
from results import Result, make_parser

SETS = ("minimal", "lines", "modules", "libraries", "shapes", "flops", "memory", "stacks", "default", "everything")
_RUN = Path(__file__).resolve().parent / "programs" / "topics.py"


def run_round(options: argparse.Namespace, shift: int) -> dict[str, tuple[float, int]]:
    """Milliseconds of the median step and bytes of the trace, by set."""
    order = [*SETS[shift:], *SETS[:shift]]
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        words = ["--folder", folder, "--active", str(options.active), "--topics", "minimal", *order]
        run_once(Program("topics", [options.python, str(_RUN), *words], {"DEEPSCOPE_CACHE_DIR": folder}))
        measured = json.loads(Path(folder, "result.json").read_text())
    return {
        topics: (statistics.median(measured[topics]["steps_ms"]), measured[topics]["size_bytes"]) for topics in SETS
    }


def main() -> None:
    parser = make_parser(__doc__, 3)
    parser.add_argument("--active", type=int, default=20, help="recorded steps (default 20)")
    options = parser.parse_args()
    rounds = [run_round(options, 3 * shift % len(SETS)) for shift in range(options.repeats)]
    result = Result.of("topics", options, {"repeats": options.repeats, "active": options.active})
    rows = [["topics", "step", "low to high", "trace"]]
    for topics in SETS:
        step = Spread.of([one[topics][0] / one["minimal"][0] for one in rounds])
        size = Spread.of([one[topics][1] / one["minimal"][1] for one in rounds])
        rows.append([topics, f"{step.median:.2f}", f"{step.low:.2f} to {step.high:.2f}", f"{size.median:.2f}"])
    result.tables[f"over torch's own recording; medians of {options.repeats}"] = rows
    result.samples["rounds"] = rounds
    result.finish(options)


if __name__ == "__main__":
    main()
