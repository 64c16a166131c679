"""All remedies that are applied from outside, in the order in which they are tried."""

from __future__ import annotations

from deepscope.trials.remedies import lightning, loader, modules, optimizer, switches
from deepscope.trials.remedy import AppliedRemedy

REMEDIES: dict[str, AppliedRemedy] = {
    one.name: one for module in (switches, loader, optimizer, lightning, modules) for one in module.REMEDIES
}
"""By name; what takes long to start comes last."""


def remedies_of(finding: str) -> list[AppliedRemedy]:
    """Those that answer a finding, by its code."""
    return [one for one in REMEDIES.values() if finding in one.findings]
