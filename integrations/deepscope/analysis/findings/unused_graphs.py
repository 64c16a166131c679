"""DS038: autograd keeps a graph that no backward pass goes through."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, location_of, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import bytes_text
from deepscope.records import Finding

WORTH = 0.05
"""A line is named if the forward work there takes at least this share of the wall time."""
_SHARE = 0.1
"""Of the forward work's time (docs/findings/DS038.md)."""


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).graphs:
        forward_ns = unused_ns(facts, one.operators, backward=False)
        if forward_ns < max(WORTH * facts.wall_ns, 1):
            continue
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message="autograd keeps a graph of what is computed here, with up to "
            f"{bytes_text(one.result_bytes) or '0B'} of results, and no backward pass goes through it",
            evidence={
                "forward_ns": forward_ns,
                "operators_per_step": sum(use.unused for use in one.operators),
                "result_bytes_per_step": one.result_bytes,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=int(_SHARE * forward_ns),
            remedy="Call it under `with torch.no_grad():` (or `torch.inference_mode()`), which keeps nothing for a "
            "backward pass: less memory, and somewhat less time.",
        )


RULE = Rule("DS038", "A graph without a backward pass", _find, shortens_work=True, measured_on=("cpu",))
