"""What kinds of Python code cost unrecorded, what recording makes of that, and what the report shows of it.

Each kind runs in a process of its own. All times are CPU time of the thread, a step.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from measure import Spread, run_for_result
from results import Goal, Result, make_parser

_STEPS = Path(__file__).resolve().parent / "programs" / "python_code.py"
KINDS = (
    "generator", "comprehension", "key function", "callback", "recursion", "tight loop", "long loop", "properties",
    "context managers", "long function", "C calls", "tiny operators",
)  # fmt: skip
_CLOSE_MS, _CLOSE_SHARE = 2.0, 0.25
"""Shown times may be so far from plain ones."""


def error(one: dict[str, Any]) -> float:
    """How far the shown time is from the plain one, as a part of what it may be."""
    return abs(one["shown_ms"] - one["plain_ms"]) / max(_CLOSE_MS, _CLOSE_SHARE * one["plain_ms"])


def row(kind: str, rounds: list[dict[str, Any]]) -> list[str]:
    def middle(name: str) -> str:
        return f"{statistics.median(one[name] for one in rounds):.1f}"

    first = f"{statistics.median(one['recorded_ms'][0] for one in rounds):.1f}"
    every = f"{statistics.median(statistics.mean(one['recorded_ms']) for one in rounds):.1f}"
    far = statistics.median(map(error, rounds))
    mark = "slowed by recording" if any(one["is_slowed"] for one in rounds) else "far" if far > 1 else ""
    return [kind, middle("plain_ms"), first, every, middle("shown_ms"), middle("recorder_ms"), f"{far:.2f}", mark]


def main() -> None:
    parser = make_parser(__doc__, 3)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one")
    options = parser.parse_args()
    kinds = options.kind or KINDS
    result = Result.of("python_code", options, {"repeats": options.repeats})
    table = [["", "plain ms", "first recorded", "recorded", "shown", "recorder", "error / allowed", ""]]
    for kind in kinds:
        rounds = []
        for number in range(options.repeats):
            rounds.append(run_for_result(kind, [options.python, str(_STEPS), "--kind", kind])[0])
            print(f"round {number + 1}  {kind}", file=sys.stderr)
        far = Spread.of([0.0 if one["is_slowed"] else error(one) for one in rounds])
        result.goals.append(Goal(f"{kind}: error of the shown time / allowed", far, at_most=1.0))
        table.append(row(kind, rounds))
        result.samples[kind] = rounds
    marked = Spread.of([float(sum(any(one["is_slowed"] for one in rounds) for rounds in result.samples.values()))])
    before_monitoring = str(result.versions["python"]).startswith(("3.10.", "3.11."))
    result.goals.append(Goal("kinds marked as slowed by recording", marked, at_most=3.0 if before_monitoring else 1.0))
    result.tables[f"CPU time of a step; medians of {options.repeats}"] = table
    result.finish(options)


if __name__ == "__main__":
    main()
