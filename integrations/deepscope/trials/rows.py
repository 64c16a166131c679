"""Rows of what was tried, and their words."""

from __future__ import annotations

from deepscope.records.tries import Try
from deepscope.trials.judgement import verdict_of
from deepscope.trials.session import Measured

_BUSY = "this machine is busy, or its runs differ much: unchanged and changed steps overlap"


def measured_row(finding: str, remedy: str, measured: Measured) -> Try:
    """Of what was measured."""
    found, compared = measured.found, measured.compared
    verdict = verdict_of(found, compared.losses)
    return Try(
        finding=finding,
        remedy=remedy,
        before_ns=found.before_ns,
        after_ns=found.after_ns,
        speedup=found.ratio,
        interval=(found.low, found.high),
        verdict=verdict,
        reason=compared.reason or (_BUSY if verdict == "inconclusive" else ""),
        losses=compared.losses,
    )


def not_applicable_row(finding: str, remedy: str, reason: str) -> Try:
    """Of a remedy that cannot be applied to the program."""
    return Try(finding=finding, remedy=remedy, verdict="not applicable", reason=reason)


def untimed_row(finding: str, remedy: str, reason: str) -> Try:
    """Of a remedy that there was no time for."""
    return Try(finding=finding, remedy=remedy, verdict="inconclusive", reason=reason)


def failed_row(finding: str, remedy: str, reason: str) -> Try:
    """Of a remedy with which the program failed."""
    return Try(finding=finding, remedy=remedy, verdict="failed", reason=reason)
