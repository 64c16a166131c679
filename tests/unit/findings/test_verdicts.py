"""No finding contradicts the verdict of the line at which it stands."""

from __future__ import annotations

import gzip

import pytest

from deepscope.analysis.findings import RULES
from deepscope.analysis.verdict import ALLOWED
from deepscope.ranks.straggler_finding import CODE as STRAGGLER
from recorded_traces import each_trace, profile_of

CAUSES = {
    "DS003": ("data_ns", "host_ns", "waiting_ns"),
    "DS004": ("launch_ns", "short_ns", "host_ns"),
    "DS005": ("host_ns",),
    "DS007": ("short_ns", "launch_ns", "host_ns"),
    "DS011": ("short_ns", "launch_ns", "host_ns"),
    "DS013": ("host_ns",),
    "DS019": ("host_ns", "waiting_ns"),
    "DS034": ("short_ns", "launch_ns", "host_ns"),
}
"""What a finding says that the line's time goes to, as the parts of its cost."""
WORDS = {
    "compute-bound": (), "memory-bound": (), "launch-bound": ("launch_ns", "short_ns"), "host-bound": ("host_ns",),
    "waiting": ("waiting_ns",), "data": ("data_ns", "copies_ns"), "communication": ("communication_ns",),
}  # fmt: skip


@pytest.mark.parametrize("path", each_trace())
def test_no_finding_of_a_trace_names_another_cause_than_its_lines_verdict(path):
    profile = profile_of(path)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    absent = {"loader": "DataLoader", "optimizer": "Optimizer."}
    absent = {word: name for word, name in absent.items() if name not in text}
    lines = {(one.file, one.line): one for one in profile.lines}
    for finding in profile.findings:
        assert not {word for word in absent if word in finding.message + finding.remedy.text}, finding
        line = lines.get((finding.file, finding.line))
        causes = CAUSES.get(finding.code)
        if line is None or causes is None or line.verdict not in WORDS:
            continue
        assert set(causes) & set(WORDS[line.verdict]), (finding.code, finding.file, finding.line, line.verdict)
        if finding.code == "DS005":  # idle time that the line's own account gives to other work, and none beside it
            assert finding.evidence["device_idle_ns"] <= line.why.host_ns


def test_the_table_knows_the_codes_that_there_are_and_each_verdict():
    assert set().union(*ALLOWED.values()) <= {rule.code for rule in RULES} | {STRAGGLER}
    assert set(ALLOWED) == {*WORDS, "slowed by recording"}
