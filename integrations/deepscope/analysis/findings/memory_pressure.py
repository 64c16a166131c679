"""Whether memory is short, which decides what advice that saves memory is worth."""

from __future__ import annotations

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.numbers.memory import DeviceCurve, capacity_bytes
from deepscope.records import Severity

SHORT = 0.7
"""Memory is short if the peak takes this part of what the device has, or if an allocation failed."""
LARGE = 0.1
"""A saving of this part of the peak is large."""


def is_short(facts: Facts, curve: DeviceCurve) -> bool:
    """Whether it would help to need less memory; False where the trace does not say what the device has."""
    account = facts.trace.header.memory
    if account is not None and account.failure is not None:
        return account.failure.on_cpu == (curve.device_type == 0)
    capacity = capacity_bytes(facts.trace, curve.device_type, curve.device_id)
    return bool(capacity) and max(curve.peak_bytes, int(curve.reserved_bytes.max())) >= SHORT * capacity


def memory_severity(facts: Facts, curve: DeviceCurve, saving_bytes: int) -> Severity:
    """Where memory is short a large saving is a warning, a smaller one worth a word; else it is a hint."""
    if not is_short(facts, curve):
        return "hint"
    return "warning" if saving_bytes >= LARGE * curve.peak_bytes else "info"
