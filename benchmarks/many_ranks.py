"""What recording costs where several ranks wait for each other: with all of them recorded, one, and none.

The ranks are processes of this machine (gloo, torchrun), of one thread each. In each round the three take turns in the
same processes; ratios compare medians of all ranks within a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import describe_machine, describe_python
from measure import Program, Spread, run_once

CHOICES = ("none", "first", "all")
_RUN = Path(__file__).resolve().parent / "programs" / "many_ranks.py"


def measured(options: argparse.Namespace) -> list[list[dict[str, dict[str, list[float]]]]]:
    """By rank and round: what `programs/many_ranks.py` tells of each choice of ranks."""
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={options.ranks}"]
        words = [*launcher, str(_RUN), folder, str(options.active), str(options.repeats)]
        run_once(Program("many ranks", [options.python, *words], {"DEEPSCOPE_CACHE_DIR": folder}))
        told: list[list[dict[str, dict[str, list[float]]]]] = json.loads(Path(folder, "result.json").read_text())
    return told


def medians(told: list[list[dict[str, dict[str, list[float]]]]], choice: str, number: str) -> list[float]:
    """Over all ranks, for each round."""
    return [
        statistics.median([value for rank in told for value in rank[turn][choice][number]])
        for turn in range(len(told[0]))
    ]


def longest(told: list[list[dict[str, dict[str, list[float]]]]], choice: str, number: str) -> list[float]:
    """Of all ranks, for each round: the others wait for that one."""
    return [max(value for rank in told for value in rank[turn][choice][number]) for turn in range(len(told[0]))]


def rows(told: list[list[dict[str, dict[str, list[float]]]]]) -> dict[str, Any]:
    """By choice of ranks: a step over one without recording, and what the ends of window and block take."""
    none = medians(told, "none", "steps_ms")
    found = {}
    for choice in CHOICES:
        steps = medians(told, choice, "steps_ms")
        ratio = Spread.of([one / other for one, other in zip(steps, none, strict=True)])
        found[choice] = {"step": ratio.median, "low": ratio.low, "high": ratio.high}
        found[choice] |= {name: statistics.median(longest(told, choice, name)) for name in ("window_ms", "block_ms")}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--active", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="two ranks and three steps, to see that it runs")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.quick:
        options.ranks, options.repeats, options.active = 2, 1, 3
    found = rows(measured(options))
    print(f"{describe_machine()}; {describe_python(options.python)}\n", file=sys.stderr)
    print("| recorded | step | low to high | end of the window, ms | end of the block, ms |\n|---|--:|--:|--:|--:|")
    for choice, row in found.items():
        spread = f"{row['low']:.2f} to {row['high']:.2f}"
        print(f"| {choice} | {row['step']:.2f} | {spread} | {row['window_ms']:.1f} | {row['block_ms']:.1f} |")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
