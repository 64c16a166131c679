"""The findings page: advice, its evidence, where, and the page that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, Figure, PageAnswer, Question, in_page_words, place_words, word
from deepscope.records import Finding, Profile, Severity
from deepscope.report.findings import SavingWord, evidence_figure, page_file, saving_word, tried_words, without_findings

_CODE = re.compile(r"DS\d{3}")
_LONGEST = 2000
"""Letters of a message."""


class ShownFinding(PageAnswer):
    """One piece of advice."""

    code: str
    title: str
    severity: Severity
    file: str
    """As recorded; "" where no line is known."""
    line: int
    place: str
    """`net.py:42`; "" where no line is known."""
    function: str
    message: str
    remedy: str
    saving_word: SavingWord
    """Whether about so much can be saved, or up to it."""
    saving_ns: int
    """Wall time that can be saved, over all steps."""
    saving_share: float
    """Of the wall time."""
    evidence: list[Figure]
    tried: list[str]
    """What each remedy that was tried has gained."""


class Findings(PageAnswer):
    """All advice, the largest saving first."""

    findings: list[ShownFinding]
    without: str
    """What it means that there are none."""
    steps: int


class FindingPageAsked(Question, kw_only=True, frozen=True):
    """Which advice's page."""

    code: str


class FindingPage(PageAnswer):
    """The page that explains a piece of advice."""

    code: str
    text: str
    """In Markdown; "" where there is no such page."""


def finding_page(library: Library, question: FindingPageAsked) -> FindingPage:
    """The page that explains a piece of advice, as it stands in the package."""
    del library
    page = page_file(f"docs/findings/{question.code}.md") if _CODE.fullmatch(question.code) else None
    return FindingPage(code=word(question.code), text="" if page is None else page.read_text(encoding="utf-8"))


def findings(library: Library, question: Choice) -> Findings:
    """What could be changed."""
    profile = library.profile(question)
    return Findings(
        findings=[shown_finding(profile, one) for one in profile.findings],
        without=without_findings(profile),
        steps=profile.totals.steps,
    )


def shown_finding(profile: Profile, one: Finding) -> ShownFinding:
    """A finding as pages show it."""
    wall = profile.totals.wall_ns
    return ShownFinding(
        code=word(one.code),
        title=word(one.title),
        severity=one.severity,
        file=one.file,
        line=one.line,
        place=place_words(one.file, one.line, profile.trace.project_root),
        function=word(one.function),
        message=in_page_words(one.message)[:_LONGEST],
        remedy=in_page_words(one.remedy.text)[:_LONGEST],
        saving_word=saving_word(one),
        saving_ns=one.saving_ns,
        saving_share=one.saving_ns / wall if wall else 0.0,
        evidence=[*_figures(one)],
        tried=[in_page_words(words)[:_LONGEST] for words in tried_words(profile.tries, one.code)],
    )


def _figures(one: Finding) -> Iterator[Figure]:
    """Words are in the message."""
    for name, given in one.evidence.items():
        label, kind, value = evidence_figure(name, given)
        if kind != "text" and not isinstance(value, str):
            yield Figure(word(label), value, kind)
