"""What is said of a straggler: one sentence with its figures."""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.quantities import count_text, time_text
from deepscope.ranks.results import Figure, Straggler

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
    name = printable(one.file.replace("\\", "/").rpartition("/")[2])
    return f"{name}:{one.line} has {time_text(one.line_ns * _late_part(one))} of it"


def _times(figure: Figure) -> str:
    return f"{time_text(figure.value)} a step, the others {time_text(figure.typical) or 'not at all'}"


def _count(value: float) -> str:
    return count_text(round(value)) or "none"
