"""DS035: what a line computes is the same in each step."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, location_of, unused_names, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding

WORTH = 0.02
"""A function is named if it would save at least this share of the wall time."""


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).same:
        saving_ns = unused_ns(facts, one.operators, backward=False)
        if saving_ns < max(WORTH * facts.wall_ns, 1):
            continue
        names = unused_names(one.operators)
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"each step computes the same here, from constants or tensors that no step changes: {names}",
            evidence={
                "same_ns": saving_ns,
                "operators_per_step": sum(use.unused for use in one.operators),
                "result_bytes_per_step": one.result_bytes,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=saving_ns,
            remedy="Compute it once, where the model is made, and keep it as a buffer "
            "(`register_buffer(…, persistent=False)`); for changing lengths keep the longest and slice it.",
        )


RULE = Rule("DS035", "The same work in each step", _find, measured_on=("cpu",))
