"""DS022: autograd looks for anomalies at every operator, as it should while a NaN is sought and no longer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from deepscope.analysis.array_ops.selection import by_line, named, of_kind
from deepscope.analysis.findings.anomaly_checks import ASKS
from deepscope.analysis.findings.calls_below import marked
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_text import lines_calling
from deepscope.records import Evidence, Finding
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import evaluated_node, is_backward_root

WORTH = 0.02
"""It is named if it would save at least this share of the wall time."""
VIEW_NS = 3_000
"""A view that autograd follows takes about this by itself; what it takes more is the stack that is kept for it."""
_VIEWS = frozenset(
    f"aten::{name}"
    for name in ("t", "transpose", "permute", "view", "expand", "select", "slice", "unsqueeze", "squeeze")
)
_SWITCHES = re.compile(r"(?:^|\.)(?:set_)?detect_anomaly$")
_REMEDY = (
    "Take `torch.autograd.set_detect_anomaly(True)` (or `detect_anomaly()`) out; switch it on to seek a NaN alone."
)
_LIGHTNING = "Make the Trainer with `detect_anomaly=False`; switch it on to seek a NaN alone."


def _find(facts: Facts) -> Iterator[Finding]:
    trace, location = facts.trace, facts.attribution.owners.location
    settings = trace.header.settings
    found = facts.anomaly_checks
    found = found[facts.analysis.extent.holds(trace.events.start_ns[found])]
    if not len(found):
        return
    lengths = trace.events.duration_ns[found]
    checking = by_line(location[found], facts.lines, lengths)
    evidence: Evidence = {
        "checks": int(np.count_nonzero(named(trace, marked(facts, found), ASKS.__eq__))),
        "checking_ns": int(checking.sum()),
    }
    if facts.has_device:
        # Here the CPU waited, and the device afterwards.
        whole = facts.gaps.checked // facts.devices
        evidence["device_idle_after_ns"] = int(facts.gaps.checked.sum())
    else:
        kept, each_ns = _kept_stacks(facts)
        stacks = by_line(location[kept], facts.lines, np.full(len(kept), each_ns, np.int64))
        whole = checking + stacks
        evidence |= {"stacks": len(kept), "stacks_ns": int(stacks.sum())}
    saving = int(whole.sum())
    if saving < max(WORTH * facts.wall_ns, 1):
        return
    by_trainer = settings is not None and settings.trainer.get("detect_anomaly") is True
    finding = RULE.finding(
        facts,
        location=-1,
        message="autograd looks for anomalies: it keeps a stack for each operator, and seeks NaN in each gradient",
        evidence=evidence,
        saving_ns=saving,
        remedy=_LIGHTNING if by_trainer else _REMEDY,
    )
    file, line = _switch(trace)
    yield replace(finding, file=file, line=line)


def _switch(trace: Trace) -> tuple[str, int]:
    """Where anomaly detection is switched on, as the files' text says; ("", 0) where that is not one line."""
    found = [
        (file.path, line)
        for file in trace.header.texts()
        if "detect_anomaly" in (file.text or "")
        for line in lines_calling(trace, file.path, lambda name: _SWITCHES.search(name) is not None)
    ]
    return found[0] if len(found) == 1 else ("", 0)


def _kept_stacks(facts: Facts) -> tuple[Int64, int]:
    """The forward operators (events) that a stack was kept for, and what one costs: the mean of views beyond `VIEW_NS`.

    A view does nothing else, so that its own time is that of the stack, as deep as the program's are. Each node keeps
    one as it is made; the nodes are counted as the backward pass runs them.
    """
    attribution, events, trace = facts.attribution, facts.trace.events, facts.trace
    operators = attribution.operators
    roots = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), is_backward_root))
    gathers = named(trace, marked(facts, roots), lambda name: evaluated_node(name) == "torch::autograd::AccumulateGrad")
    roots = roots[~gathers[roots] & facts.analysis.extent.holds(events.start_ns[roots])]
    forward = pick(attribution.calls.up, roots)
    forward = forward[forward >= 0]
    forward = forward[~attribution.calls.backward[forward]]
    views = named(trace, marked(facts, forward), _VIEWS.__contains__)[forward]
    own = operators.self_ns[operators.around[forward[views]]]
    return forward, max(int(own.mean()) - VIEW_NS, 0) if len(own) else 0


RULE = Rule("DS022", "Anomaly detection left on", _find, measured_on=("cpu",))
