"""Rows of what was tried, as text, as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from deepscope.printable import printable
from deepscope.quantities import TIMES, time_text
from deepscope.records.findings import Try
from deepscope.report import markdown
from deepscope.report.terminal import Styles, entries_text

_ORDER = ("faster", "results differ", "slower", "inconclusive", "no gain", "failed")


def tries_json(tries: Sequence[Try]) -> str:
    """`{"tries": […]}`, a row for each."""
    return msgspec.json.format(msgspec.json.encode({"tries": list(tries)}), indent=2).decode() + "\n"


def tries_text(tries: Sequence[Try], *, width: int, color: bool, options: Sequence[str] = ()) -> str:
    """A verdict for each, the best first; what does not apply last.

    Args:
        tries: the rows.
        width: of the terminal in cells.
        color: whether it shows colours.
        options: what is written for the final set of a search.
    """
    styles = Styles(color)
    entries = list(_entries(tries))
    if options:
        entries += [("together", "write all of these:" if len(options) > 1 else "write this:")]
        entries += [("", f"+ {printable(one)}") for one in options]
    if not entries:
        entries = [("tried", "nothing: no remedy is applied from outside")]
    return "\n".join(entries_text(entries, width, styles)) + "\n"


def verified_markdown(one: Try, program: str, before: str, after: str) -> str:
    """What `deepscope verify` found as GitHub shows it; what the program says is shown as it is and never interpreted.

    Args:
        one: the change.
        program: with its arguments.
        before: the revision or file that ran unchanged.
        after: the other one; "" for the folder as it is.
    """
    sides = f"{markdown.code(before)} → {markdown.code(after) or 'the folder as it is'}"
    parts = [f"### DeepScope: {markdown.plain(sentence(one))}", f"{markdown.code(program)}, {sides}"]
    if one.reason:
        parts.append(markdown.plain(one.reason, 400))
    return "\n\n".join(parts) + "\n"


def _entries(tries: Sequence[Try]) -> Iterator[tuple[str, str]]:
    timed = [one for one in tries if one.verdict != "not applicable"]
    for one in sorted(timed, key=lambda one: (_ORDER.index(one.verdict), -(one.speedup or 0.0))):
        name, _, written = one.remedy.partition(": ")
        together = one.remedy.count(": ") > 1
        yield printable("together" if together else name), sentence(one)
        if one.reason:
            yield "", printable(one.reason)
        if one.verdict == "faster" and not together:
            yield "", printable(f"write {written}")
    for one in tries:
        if one.verdict == "not applicable":
            subject = one.remedy.partition(": ")[0] or one.finding
            yield "not applicable", printable(f"{subject}: {one.reason}")


def sentence(one: Try) -> str:
    """The verdict with its figures: `faster by 23% (18 to 27%), losses identical: 12.3ms, 9.5ms a step`."""
    if one.speedup is None or one.interval is None:
        return str(one.verdict)
    steps = f"{time_text(one.before_ns or 0)} → {time_text(one.after_ns or 0)} a step"
    losses = f"losses {one.losses}"
    ratio = f"{one.speedup:.2f} {TIMES} ({one.interval[0]:.2f} to {one.interval[1]:.2f})"
    if one.verdict == "results differ":
        return f"RESULTS DIFFER: this is not the same training; {steps}"
    if one.verdict == "faster":
        low, high = (_less(bound) for bound in one.interval)
        return f"faster by {_less(one.speedup)}% ({low} to {high}%), {losses}: {steps}"
    if one.verdict == "slower":
        return f"slower by {round(100 * (1 / one.speedup - 1))}%, {losses}: {steps}"
    if one.verdict == "no gain":
        return f"no gain: {ratio}, {losses}"
    return f"inconclusive: {ratio}, {losses}"


def _less(ratio: float) -> int:
    """The percent of a step that are saved."""
    return round(100 * (1 - 1 / ratio))
