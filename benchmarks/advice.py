"""How true the savings are that findings promise: each rule's program with its mistake and without it.

The bad program and the mended one run as whole processes, the order turning from round to round, and so does the
recording of the bad one. Both savings are shares of the step: the finding's of the recorded wall time less what
recording lines cost, and what the mended program's step takes less than the bad one's without any recording. A busy
spell of the machine holds up all of a step alike, and so tells in neither. Steps are timed by the CPU clock of their
process, which other programs do not disturb: what a worker process does counts as done on a core that was free.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Spread, run_for_result
from results import Goal, Result, make_parser

_STEPS = Path(__file__).resolve().parent / "programs" / "advice.py"
_PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "targets" / "advice"
RULES = tuple(path.stem.upper() for path in sorted(_PROGRAMS.glob("ds*.py")))
_HEAD = ["", "bad step ms", "mended step ms", "estimated", "measured", "estimated / measured", "found in the mended"]


@dataclass(frozen=True)
class Round:
    """One round of one rule."""

    bad_ms: float
    mended_ms: float
    estimated: float
    """Share of the recorded wall time that the rule's findings would save."""
    others: list[str]
    """Codes of what is found in a recording of the mended program."""

    @property
    def measured(self) -> float:
        return (self.bad_ms - self.mended_ms) / self.bad_ms


def run(python: str, rule: str, steps: int, *words: str) -> dict[str, Any]:
    command = [python, str(_STEPS), "--rule", rule, "--steps", str(steps), *words]
    return run_for_result(f"{rule} {' '.join(words)}", command)[0]


def run_round(python: str, rule: str, number: int, steps: int) -> Round:
    ways = [(), ("--mended",), ("--record",)]
    ways = ways[number % 3 :] + ways[: number % 3]
    results = {words: run(python, rule, steps, *words) for words in ways}
    recorded = results["--record",]
    saving = sum(one["saving_ms"] for one in recorded["findings"] if one["code"] == rule)
    mended = run(python, rule, steps, "--mended", "--record") if number == 0 else {"findings": []}
    return Round(
        bad_ms=results[()]["step_ms"],
        mended_ms=results["--mended",]["step_ms"],
        estimated=saving / recorded["step_ms"],
        others=sorted({one["code"] for one in mended["findings"]}),
    )


def middle(rounds: list[Round]) -> tuple[float, float, float, float]:
    """Medians: the steps of both programs, and the estimated and the measured share."""
    bad = statistics.median(one.bad_ms for one in rounds)
    mended = statistics.median(one.mended_ms for one in rounds)
    return bad, mended, statistics.median(one.estimated for one in rounds), (bad - mended) / bad


def main() -> None:
    parser = make_parser(__doc__, 5)
    parser.add_argument("--steps", type=int, default=24, help="steps of each process (default 24)")
    parser.add_argument("--rule", choices=RULES, action="append", help="only this one")
    options = parser.parse_args()
    settings = {"repeats": options.repeats, "steps": options.steps}
    result = Result.of("advice", options, settings)
    table, errors, ratios = [_HEAD], [], []
    for rule in options.rule or RULES:
        rounds = []
        for number in range(options.repeats):
            rounds.append(run_round(options.python, rule, number, options.steps))
            print(f"round {number + 1}  {rule}  {rounds[-1]}", file=sys.stderr)
        bad, mended, estimated, measured = middle(rounds)
        ratios.append(estimated / max(measured, 0.001))
        errors.append(abs(ratios[-1] - 1))
        others = sorted({code for one in rounds for code in one.others}) or ["none"]
        table.append([rule, f"{bad:.1f}", f"{mended:.1f}", f"{estimated:.1%}", f"{measured:.1%}", f"{ratios[-1]:.2f}"])
        table[-1].append(" ".join(others))
        result.samples[rule] = [asdict(one) for one in rounds]
    result.goals.append(Goal("error of the estimated savings", Spread.of(errors), at_most=0.25))
    largest = max(ratios)
    result.goals.append(Goal("largest estimated / measured", Spread(largest, min(ratios), largest), at_most=2.0))
    result.tables[f"savings as shares of the step; medians of {options.repeats}"] = table
    result.finish(options)


if __name__ == "__main__":
    main()
