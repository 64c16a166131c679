"""Findings as records of the Profile, of one rank and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from deepscope.records import Edit, Finding, Remedy

if TYPE_CHECKING:
    from deepscope.analysis.findings import Found, Rule
    from deepscope.analysis.result import Analysis

__all__ = ["finding_records", "merge_findings"]


def finding_records(analysis: Analysis) -> list[Finding]:
    """Everything that the rules find in an analysis, the largest saving first."""
    # A merge of cached profiles does without NumPy.
    from deepscope.analysis.findings import find_all

    return [_record(analysis, rule, found) for rule, found in find_all(analysis)]


def _record(analysis: Analysis, rule: Rule, found: Found) -> Finding:
    from deepscope.analysis.findings import severity_of

    place = analysis.attribution.scopes.locations[found.location] if found.location >= 0 else None
    return Finding(
        code=rule.code,
        title=rule.title,
        severity=severity_of(found.saving_ns, analysis.window.total_ns),
        file=place.file if place else "",
        line=place.line if place else 0,
        function=place.function if place else "",
        message=found.message,
        evidence=dict(found.evidence),
        saving_ns=found.saving_ns,
        remedy=Remedy(found.remedy, [Edit(edit.line, edit.old, edit.new) for edit in found.edits]),
        doc=f"docs/findings/{rule.code}.md",
    )


_WEIGHT = {"warning": 2, "info": 1, "hint": 0}


def merge_findings(tables: Sequence[Sequence[Finding]]) -> list[Finding]:
    """The findings of several ranks: at each place savings and integers are sums over the ranks.

    All else is that of the rank with the largest saving.
    """
    groups: dict[tuple[str, str, int], list[Finding]] = {}
    for table in tables:
        for finding in table:
            groups.setdefault((finding.code, finding.file, finding.line), []).append(finding)
    return sorted(map(_merged, groups.values()), key=lambda one: (-one.saving_ns, one.code, one.file, one.line))


def _merged(group: list[Finding]) -> Finding:
    largest = max(group, key=lambda one: one.saving_ns)
    evidence = {
        name: sum(v for one in group if isinstance(v := one.evidence.get(name), int))
        if isinstance(value, int)
        else value
        for name, value in largest.evidence.items()
    }
    return msgspec.structs.replace(
        largest,
        severity=max((one.severity for one in group), key=_WEIGHT.__getitem__),
        evidence=evidence,
        saving_ns=sum(one.saving_ns for one in group),
    )
