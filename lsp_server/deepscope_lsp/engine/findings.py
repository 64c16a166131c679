"""What the library's findings say, in the words of a diagnostic or a hover."""

from __future__ import annotations

from collections.abc import Mapping

from deepscope.records import Finding
from deepscope_lsp.engine import wording
from deepscope_lsp.engine.measure import Measure

__all__ = ["evidence_words", "finding_words"]


def finding_words(finding: Finding, measure: Measure) -> str:
    """Title, message, what it could save, and the figures that say so."""
    words = f"{finding.title}: {finding.message}."
    if finding.saving_ns:
        words += f" Could save up to {wording.duration(measure.per_step(finding.saving_ns))} {measure.step_words}."
    evidence = evidence_words(finding.evidence, measure)
    return f"{words} ({evidence})" if evidence else words


def evidence_words(evidence: Mapping[str, int | float | str], measure: Measure) -> str:
    """`wait 12 ms, waits 40`: sums of times and sizes per step, other figures as they are."""
    return ", ".join(f"{_name(name)} {_value(name, value, measure)}" for name, value in evidence.items())


def _name(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_us").removesuffix("_bytes").replace("_", " ")


def _value(name: str, value: float | str, measure: Measure) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("_ns"):
        return wording.duration(measure.per_step(value))
    if name.endswith("_us"):
        return wording.duration(1000 * value)
    if name.endswith("_bytes"):
        return wording.size(measure.per_step(value))
    if name.endswith(("_ratio", "_share")):
        return wording.share(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
