"""What recording lines costs where Python is dense in lines, and how true the cost is that the trace states.

Each kind of step runs under torch's own recording with and without lines, each in a process of its own, the order
turning from round to round. Times are of the CPU, so that other work on the machine does not disturb them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import describe_machine, describe_python
from measure import Program, Spread, run_once
from results import Goal, Result

_STEPS = Path(__file__).resolve().parent / "programs" / "dense.py"
KINDS = ("loop", "entries", "long", "recursion", "functions", "generators", "words", "operators", "layers")
_GRACE_MS = 50.0
"""Of recording that a window may cost before detail is lowered."""


@dataclass(frozen=True)
class Run:
    """One window of one kind of step."""

    inside_ms: float
    """CPU time of the recorded steps together."""
    end_ms: float
    added_mb: float
    trace_mb: float
    stated_ms: float
    lowered: int

    @classmethod
    def of(cls, result: dict[str, Any]) -> Run:
        account = result["account"]
        return cls(
            inside_ms=sum(result["inside_cpu_ms"]),
            end_ms=result["end_ms"],
            added_mb=result["added_mb"],
            trace_mb=result["trace_mb"],
            stated_ms=result["stated_ms"],
            lowered=len(account.get("lowered", ())),
        )


def run(python: str, kind: str, way: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="deepscope-benchmark-") as folder:
        words = ["--kind", kind, "--way", way, "--folder", folder]
        run_once(Program(f"{kind}, {way}", [python, str(_STEPS), *words], {"DEEPSCOPE_CACHE_DIR": folder}))
        return Run.of(json.loads(Path(folder, "result.json").read_text()))


def goals_of(kind: str, rounds: list[dict[str, Run]]) -> list[Goal]:
    def beyond_grace(pair: dict[str, Run]) -> float:
        return max(pair["lines"].inside_ms - _GRACE_MS, 0) / pair["torch"].inside_ms

    def stated(pair: dict[str, Run]) -> float:
        return pair["lines"].stated_ms / max(pair["lines"].inside_ms - pair["torch"].inside_ms, 0.1)

    ratio = Spread.of([pair["lines"].inside_ms / pair["torch"].inside_ms for pair in rounds])
    return [
        Goal(f"{kind}: recorded steps, with lines / without", ratio),
        Goal(f"{kind}: the same less 50 ms", Spread.of([beyond_grace(pair) for pair in rounds]), at_most=2.0),
        Goal(f"{kind}: stated cost / what lines added", Spread.of([stated(pair) for pair in rounds])),
    ]


def row(kind: str, rounds: list[dict[str, Run]]) -> list[str]:
    def middle(way: str, name: str) -> float:
        return statistics.median(getattr(pair[way], name) for pair in rounds)

    return [
        kind,
        f"{middle('torch', 'inside_ms'):.1f}",
        f"{middle('lines', 'inside_ms'):.1f}",
        f"{middle('lines', 'stated_ms'):.1f}",
        f"{middle('torch', 'end_ms'):.0f}",
        f"{middle('lines', 'end_ms'):.0f}",
        f"{middle('lines', 'added_mb') - middle('torch', 'added_mb'):.0f}",
        f"{middle('lines', 'trace_mb'):.2f}",
        f"{middle('lines', 'lowered'):.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--python", default=sys.executable, help="interpreter to measure (default this one)")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one")
    options = parser.parse_args()
    kinds = options.kind or KINDS
    result = Result(
        "dense", describe_machine(), describe_python(options.python), {"repeats": options.repeats}, [], {}, {}
    )
    head = ["", "steps ms", "with lines", "stated", "end ms", "with lines", "MB more", "trace MB", "lowered"]
    table = [head]
    for kind in kinds:
        rounds: list[dict[str, Run]] = []
        for number in range(options.repeats):
            ways = ("torch", "lines") if number % 2 else ("lines", "torch")
            rounds.append({way: run(options.python, kind, way) for way in ways})
            print(f"round {number + 1}  {kind}", file=sys.stderr)
        result.goals += goals_of(kind, rounds)
        table.append(row(kind, rounds))
        result.samples[kind] = [{way: asdict(one) for way, one in pair.items()} for pair in rounds]
    result.tables[f"CPU time of 3 recorded steps, torch alone and with lines; medians of {options.repeats}"] = table
    result.print()
    if options.json:
        result.write_json(options.json)


if __name__ == "__main__":
    main()
