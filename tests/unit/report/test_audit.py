"""What the report says of steps that were looked at, or could be."""

from __future__ import annotations

from typing import Any

import pytest

from built_profiles import MODEL, MS, TRAIN, line, training
from deepscope.records import Audit, Finding, OverviewRow, Phase, Profile, Remedy
from deepscope.report.text_report import audit_entries


def profile(busy: int = 150, **changes: Any) -> Profile:
    """Two steps of 100 ms, with the device busy for so much of both, recorded by DeepScope with nothing advised."""
    made = training()
    made.memory.failure = None
    made.findings = []
    made.whole_run = None
    made.trace.deepscope, made.trace.line_source = "1.0", "scopes"
    made.totals.steps, made.totals.wall_ns = 2, 200 * MS
    made.totals.busy_ns, made.totals.idle_ns = busy * MS, (200 - busy) * MS
    made.lines = [line(TRAIN, 2, "main", 0, idle_ns=20 * MS), line(MODEL, 7, "Net.forward", 90 * MS)]
    made.phases = [Phase(name="backward", wall_ns=90 * MS, device_ns=60 * MS)]
    made.overview = [
        OverviewRow(section="step", name=name, time_ns=time * MS, whole_ns=200 * MS)
        for name, time in (("kernel", busy), ("data loader", 200 - busy))
    ]
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def finding(saving_ns: int) -> Finding:
    return Finding(
        code="DS004", title="", severity="info", file=MODEL, line=7, message="", evidence={}, saving_ns=saving_ns,
        remedy=Remedy(""), doc="",
    )  # fmt: skip


def test_a_training_program_whose_own_work_takes_the_time_is_told_how_to_look() -> None:
    ((title, words),) = audit_entries(profile())
    assert title == "audit"
    assert "deepscope run --audit" in words


@pytest.mark.parametrize(
    "changes",
    [
        {"busy": 20},  # it waits for data
        {"phases": []},
        {"findings": [finding(30 * MS)]},
        {"lines": [line(MODEL, 7, "Net.forward", 90 * MS, in_compiled_region=True)]},
    ],
)
def test_where_looking_would_not_help_nothing_is_said(changes: dict[str, Any]) -> None:
    assert list(audit_entries(profile(**changes))) == []


def test_a_trace_of_somebody_elses_asks_for_nothing() -> None:
    made = profile()
    made.trace.deepscope = ""
    assert list(audit_entries(made)) == []


def test_small_advice_does_not_stand_in_the_way() -> None:
    assert len(list(audit_entries(profile(findings=[finding(5 * MS)])))) == 1


def test_what_was_looked_at_is_told_with_what_stays_unknown() -> None:
    seen = Audit(steps=2, operators=1234, hidden=["mine::a", "mine::b", "mine::c", "mine::d"])
    ((_, words),) = audit_entries(profile(audit=seen))
    assert words == (
        "2 steps were looked at, with 1,234 operators in the first; what mine::a, mine::b, mine::c, … do with their "
        "arguments is unknown and counts as a use"
    )


def test_why_nothing_was_looked_at_is_told() -> None:
    ((_, words),) = audit_entries(profile(audit=Audit(steps=0, left_out="torch.compile is in use")))
    assert words == "no step was looked at: torch.compile is in use"
