"""What the text report says of steps that are looked at in place of being timed."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.printable import printable
from deepscope.quantities import count_text
from deepscope.records import Profile
from deepscope.report.run_verdict import run_verdict

_HELPS = frozenset({"operators", "Python", "device busy", "device idle"})
"""Causes that may be work which nobody needs."""
_ENOUGH = 0.1
"""While a finding promises this share of the wall time, it is what to do first."""
_NAMED = 3
"""Operators from outside torch that are named."""


def audit_entries(profile: Profile) -> Iterator[tuple[str, str]]:
    """One entry: what was looked at, why nothing was, or that it might help."""
    words = _found(profile) if profile.audit is not None else _asks(profile)
    if words:
        yield "audit", words


def _found(profile: Profile) -> str:
    audit = profile.audit
    assert audit is not None
    if not audit.steps:
        return printable(f"no step was looked at: {audit.left_out}")
    words = f"{audit.steps} steps were looked at, with {count_text(audit.operators)} operators in the first"
    if not audit.hidden:
        return words
    named = ", ".join(audit.hidden[:_NAMED]) + (", …" if len(audit.hidden) > _NAMED else "")
    return printable(f"{words}; what {named} do with their arguments is unknown and counts as a use")


def _asks(profile: Profile) -> str:
    """That looking would help: where a training program's own work takes the time, and no advice does."""
    is_ours = bool(profile.trace.deepscope) and profile.trace.line_source == "scopes"
    trains = any(phase.name == "backward" and phase.wall_ns for phase in profile.phases)
    is_compiled = any(line.in_compiled_region for line in profile.lines)
    is_advised = any(one.saving_ns >= _ENOUGH * profile.totals.wall_ns for one in profile.findings)
    if not is_ours or not trains or is_compiled or is_advised or profile.part_of is not None:
        return ""
    if run_verdict(profile).cause not in _HELPS:
        return ""
    return "`deepscope run --audit` (audit=True) looks for work that nobody needs, which times cannot show"
