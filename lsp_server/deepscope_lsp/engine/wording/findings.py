"""What the library's findings say, in the words of a diagnostic or a hover, and the pages that say more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from deepscope.quantities import spaced
from deepscope.records import Finding
from deepscope.records.findings import Try
from deepscope.report.findings import evidence_figure, page_file, saving_word, tried_words
from deepscope_lsp.engine.profile_index import Scales
from deepscope_lsp.engine.wording import quantities

_LATE_RANKS = frozenset({"straggling_rank", "straggling_ranks"})
"""Where one is given, times are of one rank or of the whole run: sums over the steps, not over the ranks."""


def finding_words(finding: Finding, scales: Scales, tries: Sequence[Try] = ()) -> str:
    """Title, message, what it could save, the figures that say so, and what `tries` of its remedies have gained."""
    words = f"{finding.title}: {spaced(finding.message)}."
    if finding.saving_ns:
        saving = quantities.duration(scales.per_step(finding.saving_ns))
        words += f" Could save {saving_word(finding)} {saving} {scales.step_words}."
    evidence = evidence_words(finding.evidence, scales)
    return (f"{words} ({evidence})" if evidence else words) + tried_sentences(finding, tries)


def tried_sentences(finding: Finding, tries: Sequence[Try]) -> str:
    """What each remedy that was tried has gained, behind other sentences; "" where none was."""
    return "".join(f" {words[0].upper()}{words[1:]}." for words in tried_words(tries, finding.code))


def evidence_words(evidence: Mapping[str, int | float | str], scales: Scales) -> str:
    """`wait 12 ms, waits 40`: sums of times and sizes per step, other figures as they are."""
    per_step = scales.per_step if _LATE_RANKS.isdisjoint(evidence) else scales.per_step_of_rank
    return ", ".join(_figure(name, value, scales, per_step) for name, value in evidence.items())


def _figure(name: str, given: float | str, scales: Scales, per_step: Callable[[float], float]) -> str:
    label, kind, value = evidence_figure(name, given)
    if isinstance(value, str):
        return f"{label} {value}"
    if name.endswith("_ns"):
        value = per_step(value)
    elif kind == "bytes":
        # What is live at a moment is no sum over the steps.
        value = value / scales.ranks if name.endswith("peak_bytes") else scales.per_step(value)
    return f"{label} {quantities.number(value, kind)}"


@lru_cache(maxsize=256)
def page_uri(code: str, doc: str = "") -> str | None:
    """The page of a code; None where there is none.

    Args:
        code: of the diagnostic.
        doc: the page's place below the project's root, where the finding names it.
    """
    page = page_file(doc or f"docs/findings/{code}.md")
    return None if page is None else page.as_uri()
