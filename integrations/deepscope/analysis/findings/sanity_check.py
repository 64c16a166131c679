"""DS025: Lightning's sanity check is a good part of a short run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.findings.already_set import sanity_check
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding

WORTH = 0.05
"""It is named if it takes at least this part of the run."""
MUCH = 0.2
"""From this part on it is more than a hint."""


def _find(facts: Facts) -> Iterator[Finding]:
    check_ns, batches = sanity_check(facts.trace)
    header = facts.trace.header
    steps = header.plain_steps or header.recorded_steps
    training_ns = batches * steps.wall.mean_ns if steps is not None else 0
    if not check_ns or not training_ns or facts.analysis.extent.spans is not None:
        return
    ratio = check_ns / (check_ns + training_ns)
    if ratio < WORTH:
        return
    yield RULE.finding(
        facts,
        location=_host(facts),
        message=f"before training begins, the sanity check takes as long as {batches * check_ns // training_ns} of the "
        f"run's {batches} training steps",
        evidence={
            "sanity_check_ns": check_ns,
            "training_ns": training_ns,
            "training_steps": batches,
            "sanity_check_ratio": round(ratio, 3),
        },
        saving_ns=0,
        remedy="Once validation is known to run, make the Trainer with `num_sanity_val_steps=0`.",
        severity="info" if ratio >= MUCH else "hint",
    )


def _host(facts: Facts) -> int:
    """The line that calls `fit`; -1 where it is not known."""
    hosts = facts.attribution.scopes.location[facts.attribution.framework.hosts]
    hosts = hosts[hosts >= 0]
    return int(np.bincount(hosts).argmax()) if len(hosts) else -1


RULE = Rule("DS025", "Sanity check in a short run", _find)
