"""Which rule fires on which recorded trace: tests/data/golden/findings.txt, to be read by people.

`DEEPSCOPE_REGENERATE=1 python -m pytest tests/unit/findings` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from deepscope.quantities import share_text, time_text
from deepscope.records import Finding, Profile
from golden import matches_golden
from recorded_traces import needs_shared_traces, own_paths, profile_of, shared_paths

IDLE = {"DS001", "DS003", "DS004", "DS005"}
"""Rules whose savings are shares of the device's idle time."""


def described(profile: Profile, finding: Finding) -> str:
    place = f"{'/'.join(finding.file.split('/')[-2:])}:{finding.line}" if finding.file else "(no line)"
    share = share_text(finding.saving_ns, profile.totals.wall_ns)
    figures = ", ".join(f"{name} {value}" for name, value in finding.evidence.items())
    return f"  {finding.code} {finding.severity:7} {share:>6} {time_text(finding.saving_ns):>6}  {place}  {figures}"


def section(path: Path) -> list[str]:
    profile = profile_of(path)
    totals = profile.totals
    for finding in profile.findings:
        assert 0 <= finding.saving_ns <= totals.wall_ns, (path.name, finding)
    if profile.metric == "device":
        promised = sum(finding.saving_ns for finding in profile.findings if finding.code in IDLE)
        assert promised <= totals.idle_ns, path.name
    device = profile.trace.device or "unnamed device"
    head = f"{path.name.removesuffix('.json.gz')}: {device}, {totals.steps} steps, {time_text(totals.wall_ns)}"
    return [head, *(described(profile, finding) for finding in profile.findings)]


def table(paths: list[Path]) -> str:
    return "\n".join(line for path in paths for line in section(path)) + "\n"


def test_each_of_the_repositorys_traces_has_the_findings_of_the_table():
    matches_golden(table(own_paths()), "findings-own.txt")


@needs_shared_traces
def test_each_shared_trace_has_the_findings_of_the_table():
    matches_golden(table(shared_paths()), "findings.txt")
