"""What it costs to have torch.compile keep the source lines of its kernels (`compiled_lines`).

The same model is compiled in processes of their own with and without, the order turning from round to round: with
empty caches of graphs, and with full ones. C++ that was built stays in the cache: it is the same either way and takes
longest. Times are of the CPU, so that other work on the machine does not disturb them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import describe_machine, describe_python
from measure import Program, Spread, run_once
from results import Goal, Result

_PROGRAM = Path(__file__).resolve().parent / "programs" / "compiling.py"
_GRAPHS = shutil.ignore_patterns("fxgraph", "aotautograd")
WAYS = ("plain", "lines")
CACHES = ("empty", "full")


def run(python: str, way: str, cache: Path, layers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        words = ["--way", way, "--layers", str(layers), "--folder", folder]
        run_once(Program(way, [python, str(_PROGRAM), *words], {"TORCHINDUCTOR_CACHE_DIR": str(cache)}))
        found: dict[str, Any] = json.loads(Path(folder, "result.json").read_text())
        return found


def measure(python: str, repeats: int, layers: int) -> list[dict[str, dict[str, Any]]]:
    """By round: way and cache (`plain, empty`) → what the program wrote."""
    rounds = []
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as name:
        built = Path(name, "built")
        run(python, "plain", built, layers)
        for number in range(repeats):
            found = {}
            for way in WAYS if number % 2 else WAYS[::-1]:
                cache = Path(name, f"{way}-{number}")
                shutil.copytree(built, cache, ignore=_GRAPHS)
                for state in CACHES:
                    found[f"{way}, {state}"] = run(python, way, cache, layers)
                    print(f"round {number + 1}  {way}, {state} cache", file=sys.stderr)
                shutil.rmtree(cache)
            rounds.append(found)
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--layers", type=int, default=4, help="of the transformer (default 4)")
    parser.add_argument("--python", default=sys.executable, help="interpreter to measure (default this one)")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    options = parser.parse_args()
    rounds = measure(options.python, options.repeats, options.layers)
    settings = {"repeats": options.repeats, "layers": options.layers}
    result = Result("compiling", describe_machine(), describe_python(options.python), settings, [], {}, {})
    table = [["cache of graphs", "CPU s", "with lines", "wall s", "with lines"]]
    for state in CACHES:
        ratio = Spread.of([one[f"lines, {state}"]["cpu_s"] / one[f"plain, {state}"]["cpu_s"] for one in rounds])
        result.goals.append(Goal(f"compiling, {state} cache: CPU time with lines / without", ratio))
        table.append(
            [state, *(_middle(rounds, f"{way}, {state}", unit) for unit in ("cpu_s", "wall_s") for way in WAYS)]
        )
    same = len({found["loss"] for one in rounds for found in one.values()}) == 1
    result.goals.append(Goal("different losses", Spread.of([0.0 if same else 1.0]), at_most=0))
    result.tables[f"first step of a transformer, compiled; medians of {options.repeats}"] = table
    result.samples["rounds"] = rounds
    result.print()
    if options.json:
        result.write_json(options.json)


def _middle(rounds: list[dict[str, dict[str, Any]]], name: str, unit: str) -> str:
    return f"{statistics.median(one[name][unit] for one in rounds):.1f}"


if __name__ == "__main__":
    main()
