"""Findings under the table of the text report: what and how much, then what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from deepscope import errors
from deepscope.printable import printable
from deepscope.quantities import TIMES, share_text, time_text
from deepscope.records import Finding, Profile
from deepscope.records.findings import Try
from deepscope.records.source_files import short_place
from deepscope.report.terminal import shown_words

SHOWN = 5
_FEWEST = 2
"""Fewer steps do not tell what recurs."""
_BUSY = 0.25
"""If lines wait for a core for this share of the wall time, the machine was busy with other work. If lines that
recording slowed cost as much, what they cost without it decides."""


def findings_entries(profile: Profile) -> Iterator[tuple[str, str]]:
    """Two entries a finding, the largest saving first, each a title and its printable text; without findings one."""
    found = profile.findings
    if not found:
        yield "advice", without_findings(profile)
    for finding in found[:SHOWN]:
        yield (
            printable(finding.code),
            printable(f"{_place(finding, profile)}{finding.title}: {_message(finding, profile)}"),
        )
        yield "", printable(finding.remedy.text)
        for words in tried_words(profile.tries, finding.code):
            yield "", printable(words)
    if len(found) > SHOWN:
        yield "more", shown_words(SHOWN, len(found), what="findings", rest="--format json has them all")


def page_file(doc: str) -> Path | None:
    """The page of a finding, in the installed package, else in this checkout; None where there is none.

    Args:
        doc: its place below the project's root, as `Finding.doc` has it; a place outside of it is none.
    """
    if Path(doc).is_absolute() or ".." in Path(doc).parts:
        return None
    package = Path(errors.__file__).resolve().parent
    pages = (home / doc for home in (package, package.parent.parent))
    return next((page for page in pages if page.is_file()), None)


def tried_words(tries: Sequence[Try], code: str) -> list[str]:
    """What each remedy of a finding has gained: the speedup and half of its interval, the remedy, and its verdict."""
    return [
        f"tried: {one.speedup:.2f} {TIMES} ± {one.margin:.2f} ({one.remedy}): {one.verdict}, losses {one.losses}"
        for one in tries
        if one.finding == code and one.speedup is not None
    ]


def without_findings(profile: Profile) -> str:
    """What it means that a profile has no findings: there is nothing to change, or it cannot be told, and why."""
    totals = profile.totals
    if profile.part_of is not None:
        return "Cannot tell from a part of the trace: findings are about whole steps."
    if profile.serving and not profile.lines:
        return (
            "Cannot tell without lines of code, which this trace does not have: the server records them with stacks "
            "(vLLM's torch_profiler_with_stack, SGLang's with_stack)."
        )
    if not profile.lines or profile.trace.line_source == "none":
        return "Cannot tell without lines of code, which this trace does not have: `deepscope run` records them."
    count = totals.steps or len(profile.serving_steps)
    if count < _FEWEST and profile.step is None:
        steps = "one step" if count else "no steps"
        return f"Cannot tell from a trace with {steps}: advice is about what happens again in each step."
    if was_busy(profile):
        return "Cannot tell: other programs had the cores for much of the time. Record again when they are free."
    return slowed_words(profile) or "Nothing was found that would pay to change."


def was_busy(profile: Profile) -> bool:
    """Whether other programs had the cores for so much of the time that little can be concluded."""
    return sum(line.core_wait_ns for line in profile.lines) >= _BUSY * profile.totals.wall_ns > 0


def slowed_words(profile: Profile) -> str:
    """That recording slowed lines that matter, so that their times tell nothing; "" where it did not."""
    slowed = [line for line in profile.lines if line.slowed]
    if not slowed or sum(line.cost_ns for line in slowed) < _BUSY * profile.totals.wall_ns:
        return ""
    worst = max(slowed, key=lambda line: line.cost_ns)
    place = short_place(worst.file, worst.line, profile.trace.project_root)
    return printable(f"Cannot tell: recording slowed lines down that matter, first of all {place}.")


def finding_words(finding: Finding, profile: Profile) -> str:
    """Where, what and how much in one line: `DS003 train.py:46 Data loading …: could save about 12ms a step (19%)`."""
    saving = f": {saving_words(finding, profile)}" if finding.saving_ns else ""
    return printable(f"{finding.code}  {_place(finding, profile)}{finding.title}{saving}")


SavingWord = Literal["about", "up to"]


def _place(finding: Finding, profile: Profile) -> str:
    if not finding.file:
        return ""
    return f"{short_place(finding.file, finding.line, profile.trace.project_root)} "


def _message(finding: Finding, profile: Profile) -> str:
    return f"{finding.message}; {saving_words(finding, profile)}" if finding.saving_ns else finding.message


def saving_words(finding: Finding, profile: Profile) -> str:
    """`could save about 12ms a step (19%)`; only of a finding with a saving."""
    totals = profile.totals
    steps = max(totals.steps, 1) * max(totals.ranks, 1)
    of_step = " a step" if totals.steps else ""
    share = share_text(finding.saving_ns, totals.wall_ns)
    return f"could save {saving_word(finding)} {time_text(finding.saving_ns / steps)}{of_step} ({share})"


def saving_word(finding: Finding) -> SavingWord:
    """How sure what it could save is: programs with this mistake gained about so much, or it is a bound."""
    return "about" if finding.is_measured else "up to"


FigureKind = Literal["text", "time", "bytes", "share", "count"]
_ENDINGS: dict[str, tuple[FigureKind, int]] = {"_ns": ("time", 1), "_us": ("time", 1000), "_bytes": ("bytes", 1)}


def evidence_figure(name: str, value: float | str) -> tuple[str, FigureKind, float | str]:
    """What a figure of a finding is called, its kind and its value; its unit ends its name."""
    if isinstance(value, str):
        return name.replace("_", " "), "text", value
    for ending, (kind, factor) in _ENDINGS.items():
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " "), kind, value * factor
    return name.replace("_", " "), "share" if name.endswith("_ratio") else "count", value
