"""DS037: a step computes what nobody uses."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, location_of, unused_names, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.format.audit import UnusedResults

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
_ATTENTION = "MultiheadAttention"


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).results:
        saving_ns = unused_ns(facts, one.operators, backward=False)
        if saving_ns < max(WORTH * facts.wall_ns, 1):
            continue
        what = "nothing that is computed here is used" if one.whole else "some of what is computed here is not used"
        names = unused_names(one.operators)
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"{what} in the steps that were looked at: {names}",
            evidence={
                "unused_ns": saving_ns,
                "operators_per_step": sum(use.unused for use in one.operators),
                "result_bytes_per_step": one.result_bytes,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=saving_ns,
            remedy=_remedy(one),
        )


def _remedy(one: UnusedResults) -> str:
    if one.module == _ATTENTION and not one.whole:
        return "Call the attention with `need_weights=False`: it averages its weights over the heads, for nobody."
    return (
        "Leave it out. If some steps use it (a metric that is logged now and then), compute it in those steps alone: "
        "`if step % N == 0:`."
    )


RULE = Rule("DS037", "Results that nobody uses", _find, shortens_work=True)
