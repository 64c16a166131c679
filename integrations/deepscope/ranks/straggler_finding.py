"""What is said of a rank that the others wait for: its sentence, and DS032, advice at the line that makes it late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deepscope.printable import printable
from deepscope.quantities import count_text, ranges, time_text
from deepscope.ranks.lateness import above_others, file_on_all_ranks
from deepscope.ranks.rank_summary import RankSummary
from deepscope.ranks.ranks_report import RankFigure, Straggler
from deepscope.records import Evidence, Finding, Remedy
from deepscope.records.findings import severity_of
from deepscope.records.source_files import base_name

_MORE_CALLS = 1.02
_HOST = {
    "Python": "code outside of operators takes",
    "operators": "calling operators takes",
    "delays": "delays before work take",
}


def sentence(one: Straggler, *, is_device: bool) -> str:
    """By how much it is late and how often, why, and by which line."""
    words = [f"Rank {one.rank} {_how_late(one)}"]
    why = cause_words(one, is_device=is_device)
    line = _line_words(one)
    if why or line:
        words.append(": " + "; ".join(filter(None, (why, line))))
    return "".join(words) + "."


def _how_late(one: Straggler) -> str:
    late_ns = time_text(one.excess_ns * _late_part(one))
    if one.steps <= 1:
        return f"comes {late_ns} a step later than the others"
    if one.late_steps == 1:
        return f"came {late_ns} later than the others in a single one of {one.steps} steps"
    if _is_seldom(one):
        return f"comes {late_ns} later than the others in {one.late_steps:,} of {one.steps:,} steps"
    return f"comes {late_ns} a step later than the others, in {one.late_steps:,} of {one.steps:,} steps"


def _is_seldom(one: Straggler) -> bool:
    return 0 < 2 * one.late_steps < one.steps or (one.late_steps == 1 < one.steps)


def _late_part(one: Straggler) -> float:
    """What makes a mean over all steps one over the steps that a sentence is about."""
    return one.steps / one.late_steps if _is_seldom(one) else 1.0


def cause_words(one: Straggler, *, is_device: bool) -> str:
    """Why it is late, with the figures; "" where that is not known."""
    what = "kernels" if is_device else "operators"
    above = [figure for figure in one.figures if figure.value > figure.typical]
    if not above:
        return ""
    if one.cause == "hardware":
        return f"the same {what} take {above[0].value:.2f} times as long"
    if one.cause == "work":
        calls = one.figures[0]
        if calls.value > _MORE_CALLS * calls.typical:
            return f"it runs {_count(calls.value)} {what} a step, the others {_count(calls.typical)}"
        return f"its {what} have more to do: {_times(above[-1])}" if above[-1] is not calls else ""
    if one.cause == "data":
        return f"it loads data for {_times(above[0])}"
    most = max(above, key=lambda figure: figure.value - figure.typical)
    return f"{_HOST.get(most.label, most.label)} it {_times(most)}"


def _line_words(one: Straggler) -> str:
    if not one.line:
        return ""
    name = printable(base_name(one.file))
    return f"{name}:{one.line} has {time_text(one.line_ns * _late_part(one))} of it"


def _times(figure: RankFigure) -> str:
    return f"{time_text(figure.value)} a step, the others {time_text(figure.typical) or 'not at all'}"


def _count(value: float) -> str:
    return count_text(round(value)) or "none"


CODE, TITLE = "DS032", "A rank that the others wait for"

_REMEDIES = {
    "hardware": "Look at that rank's device and its node: clocks, throttling, temperature and other programs on it "
    "(`nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE`), or leave the node out.",
    "work": "Give all ranks as much to do: batches of the same size and of like lengths (a sampler that sorts by "
    "length, padding, buckets); what one rank does besides in turn or in another process.",
    "data": "More loader workers and prefetching (`num_workers`, `prefetch_factor`, `persistent_workers=True`), or "
    "data that lies as near as the other ranks' (a local copy, equal shards).",
    "host": "What this rank alone does between operators (logging, saving, checks) less often or in another thread; if "
    "all of its Python is slow, look at its CPUs: how many threads share them, and what else runs there.",
    "": "Compare the rank with the others: `deepscope ranks FOLDER`.",
}


def straggler_findings(stragglers: Sequence[Straggler], summaries: Sequence[RankSummary]) -> list[Finding]:
    """A finding for each line that makes ranks late, in the words of the latest of them; none where nobody waits.

    Args:
        stragglers: the worst first.
        summaries: of all ranks; times are sums over all of them, as in a merged profile.
    """
    savings = _savings(stragglers, summaries)
    wall_ns = sum(one.totals.wall_ns for one in summaries)
    steps = {one.rank: max(one.totals.steps, 1) for one in summaries}
    roots = {one.rank: one.project_root for one in summaries}
    groups: dict[tuple[str, int], list[tuple[Straggler, int]]] = {}
    for one, saving_ns in zip(stragglers, savings, strict=True):
        if one.held_ns > 0:
            line = file_on_all_ranks(one.file, roots[one.rank]), one.line
            groups.setdefault(line, []).append((one, saving_ns))
    found = []
    for group in groups.values():
        (worst, _), saving_ns = group[0], sum(saving for _, saving in group)
        found.append(
            Finding(
                code=CODE,
                title=TITLE,
                severity=severity_of(saving_ns, wall_ns),
                file=worst.file,
                line=worst.line,
                function=worst.function,
                message=_message([one for one, _ in group]),
                evidence=_evidence([one for one, _ in group], steps[worst.rank]),
                saving_ns=saving_ns,
                remedy=Remedy(_REMEDIES[worst.cause]),
                doc=f"docs/findings/{CODE}.md",
            )
        )
    return found


def clause(message: str) -> str:
    """A straggler's sentence as a finding has it."""
    return message[:1].lower() + message[1:].rstrip(".")


def _message(group: Sequence[Straggler]) -> str:
    words = clause(group[0].message)
    others = ranges([one.rank for one in group[1:]])
    return f"{words}; rank{'s' if len(group) > 2 else ''} {others} too" if others else words


def _evidence(group: Sequence[Straggler], steps: int) -> Evidence:
    worst = group[0]
    found: Evidence = {
        "straggling_rank" if len(group) == 1 else "straggling_ranks": ranges([one.rank for one in group]),
        "excess_ns": worst.excess_ns * steps,
        "held_ns": sum(one.held_ns for one in group) * steps,
        "late_steps": worst.late_steps,
        "compared_steps": worst.steps,
    }
    if worst.calls:
        found |= {"last_to_come": worst.late_calls, "matched_collectives": worst.calls}
    if worst.cause:
        found["cause"] = worst.cause
    if worst.line:
        found["at_line_ns"] = worst.line_ns * steps
    if worst.cause == "hardware":
        found["times_as_long"] = round(worst.figures[0].value, 2)
    return found


def _savings(stragglers: Sequence[Straggler], summaries: Sequence[RankSummary]) -> list[int]:
    """What steps would be shorter by, over all ranks, if one straggler after the other were as the median.

    The next one holds the steps up then, at last the slowest of the ranks that are none; and no rank gets rid of more
    than it waits.
    """
    own = {one.rank: _a_step(one) for one in summaries}
    if len(own) < 2 or not stragglers:
        return [0] * len(stragglers)
    ranks = list(own)
    above = dict(zip(ranks, above_others(np.array([own[rank][0] for rank in ranks])).tolist(), strict=True))
    late = {one.rank for one in stragglers}
    rest = max((above[rank] for rank in ranks if rank not in late), default=0.0)
    levels = [float(one.excess_ns) for one in stragglers] + [max(rest, 0.0)]
    waits = sorted(own[rank][1] for rank in ranks if rank not in late)
    most = waits[len(waits) // 2] if waits else 0.0
    steps = sum(max(one.totals.steps, 1) for one in summaries)
    savings = []
    for place in range(len(stragglers)):
        saved = min(max(levels[place] - levels[place + 1], 0.0), most)
        most -= saved
        savings.append(int(saved * steps))
    return savings


def _a_step(one: RankSummary) -> tuple[float, float]:
    """Own time and communication on the critical path."""
    if one.own is None:
        return 0.0, 0.0
    steps = max(sum(one.own.steps), 1)
    communication = sum(one.own.communication_ns)
    return (sum(one.own.wall_ns) - communication) / steps, communication / steps
