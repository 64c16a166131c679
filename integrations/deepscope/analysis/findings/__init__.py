"""Rules that turn numbers into advice: one module a rule, each a pure function of an analysis (docs/findings)."""

from __future__ import annotations

from dataclasses import replace

from deepscope.analysis.findings import (
    data_loader,
    device_sync,
    float32_products,
    host_copies,
    idle_device,
    tiny_kernels,
    tiny_operators,
)
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.found import Edit, Found, Rule, Severity
from deepscope.analysis.result import Analysis

__all__ = ["RULES", "Edit", "Found", "Rule", "find_all", "severity_of"]

RULES = (
    device_sync.RULE,
    host_copies.RULE,
    data_loader.RULE,
    tiny_kernels.RULE,
    idle_device.RULE,
    float32_products.RULE,
    tiny_operators.RULE,
)
"""By code."""

_SEVERITIES: tuple[tuple[float, Severity], ...] = ((0.1, "warning"), (0.02, "info"))
"""Shares of the wall time that would be saved."""


def find_all(analysis: Analysis) -> list[tuple[Rule, Found]]:
    """Everything that the rules find, the largest saving first."""
    facts = Facts(analysis)
    found = (
        [(rule, _bounded(one, facts.wall_ns)) for rule in RULES for one in rule.find(facts)] if facts.wall_ns else []
    )
    return sorted(found, key=lambda pair: (-pair[1].saving_ns, pair[0].code, pair[1].location))


def _bounded(found: Found, wall_ns: int) -> Found:
    """Work that runs on after the window cannot save more than the window."""
    return found if found.saving_ns <= wall_ns else replace(found, saving_ns=wall_ns)


def severity_of(saving_ns: int, wall_ns: int) -> Severity:
    """How much a saving weighs: a tenth of the wall time is a warning, less than a fiftieth a hint."""
    share = saving_ns / wall_ns if wall_ns else 0.0
    return next((severity for limit, severity in _SEVERITIES if share >= limit), "hint")
