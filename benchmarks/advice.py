"""How true the savings are that findings promise: each rule's program with its mistake and without it.

The bad program and the mended one run as whole processes, the order turning from round to round, and so does the
recording of the bad one. Both savings are shares of the step: the finding's of the recorded one as it is shown, and
what the mended program's step takes less than the bad one's without any recording. A busy spell of the machine holds up
all of a step alike, and so tells in neither. Steps are timed by the CPU clock of their process, which other programs do
not disturb: what a worker process does counts as done on a core that was free. With
`--device cuda` other programs show what a device alone can, and the clock on the wall times their steps.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Spread, run_for_result
from results import Goal, Result, make_parser

_STEPS = Path(__file__).resolve().parent / "programs" / "advice.py"
_PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "targets" / "advice"
RULES = {
    "cpu": tuple(path.stem.upper() for path in sorted(_PROGRAMS.glob("ds*.py"))),
    "cuda": tuple(path.stem.upper() for path in sorted(_PROGRAMS.glob("device/ds*.py"))),
}
"""By what computes."""
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


def run(options: argparse.Namespace, rule: str, *words: str) -> dict[str, Any]:
    settings = ["--rule", rule, "--steps", str(options.steps), "--device", options.device]
    command = [options.python, str(_STEPS), *settings, *words]
    return run_for_result(f"{rule} {' '.join(words)}", command)[0]


def run_round(options: argparse.Namespace, rule: str, number: int) -> Round:
    ways = [(), ("--mended",), ("--record",)]
    ways = ways[number % 3 :] + ways[: number % 3]
    results = {words: run(options, rule, *words) for words in ways}
    recorded = results["--record",]
    mended = run(options, rule, "--mended", "--record") if number == 0 else {"findings": []}
    return as_round(rule, results[()], results["--mended",], recorded, mended)


def as_round(
    rule: str,
    bad: dict[str, Any],
    mended: dict[str, Any],
    bad_recorded: dict[str, Any],
    mended_recorded: dict[str, Any],
) -> Round:
    """One round of what `programs/advice.py` told of both programs, plain and recorded."""
    saving = sum(one["saving_ms"] for one in bad_recorded["findings"] if one["code"] == rule)
    return Round(
        bad_ms=bad["step_ms"],
        mended_ms=mended["step_ms"],
        estimated=saving / bad_recorded["step_ms"],
        others=sorted({one["code"] for one in mended_recorded["findings"]}),
    )


def run_rounds(options: argparse.Namespace, rule: str) -> Iterator[Round]:
    """Rounds as they end, in processes of their own or, with a device, in one."""
    if options.device == "cpu":
        yield from (run_round(options, rule, number) for number in range(options.repeats))
        return
    found = run(options, rule, "--rounds", str(options.repeats))
    for timed in found["timings"]:
        yield as_round(rule, timed["bad"], timed["mended"], found["bad"], found["mended"])


def middle(rounds: list[Round]) -> tuple[float, float, float, float]:
    """Medians: the steps of both programs, and the estimated and the measured share."""
    bad = statistics.median(one.bad_ms for one in rounds)
    mended = statistics.median(one.mended_ms for one in rounds)
    return bad, mended, statistics.median(one.estimated for one in rounds), (bad - mended) / bad


def main() -> None:
    parser = make_parser(__doc__, 5)
    parser.add_argument("--steps", type=int, default=24, help="steps of each process (default 24)")
    parser.add_argument("--rule", action="append", help="only this one")
    parser.add_argument("--device", choices=RULES, default="cpu", help="what computes (default cpu)")
    options = parser.parse_args()
    if unknown := sorted({*(options.rule or ())} - {*RULES[options.device]}):
        parser.error(f"--rule {unknown[0]}: one of {', '.join(RULES[options.device])}")
    settings = {"repeats": options.repeats, "steps": options.steps, "device": options.device}
    result = Result.of("advice", options, settings)
    table, errors, ratios = [_HEAD], [], []
    for rule in options.rule or RULES[options.device]:
        rounds = []
        for number, one in enumerate(run_rounds(options, rule), 1):
            rounds.append(one)
            print(f"round {number}  {rule}  {one}", file=sys.stderr)
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
