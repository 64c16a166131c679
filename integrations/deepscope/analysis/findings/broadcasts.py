"""DS043: a tensor is made much larger than what it is made of, and than what is made of it."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, both_passes_ns, location_of
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import bytes_text
from deepscope.records import Finding
from deepscope.trace.format.audit import Broadcast

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
_REMEDIES = {
    "aten::sub": "Distances of all pairs: `torch.cdist(a, b)`, or `a.square().sum(-1)[:, None] - 2 * a @ b.T + …`.",
    "aten::mul": "Sums of products: `a @ b.T`, `torch.einsum(…)`.",
    "aten::eq": "Membership: `torch.isin(a, b)`; counts: `torch.bincount(a)`.",
}
_ORDER = "Places in an order: `torch.searchsorted(…)`, `torch.bucketize(…)`."
_OTHER = "Look for an operator that does both in one (`torch.cdist`, `@`, `torch.einsum`), or go through it in pieces."


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).broadcasts:
        work_ns = both_passes_ns(facts, one.operators, one.backward)
        if work_ns < max(WORTH * facts.wall_ns, 1):
            continue
        names = [name.removeprefix("aten::") for name in (one.name, one.reduction)]
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"{names[0]} broadcasts to a tensor of {one.shape}, {bytes_text(one.result_bytes) or '0B'}, "
            f"which {names[1]} makes small again",
            evidence={
                "work_ns": work_ns,
                "result_bytes_per_step": one.result_bytes,
                "largest_argument": one.given_elements,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=work_ns,
            remedy=_remedy(one),
        )


def _remedy(one: Broadcast) -> str:
    if one.name in {"aten::lt", "aten::le", "aten::gt", "aten::ge"}:
        return _ORDER
    return _REMEDIES.get(one.name, _OTHER)


RULE = Rule("DS043", "Large tensors between small ones", _find, shortens_work=True, measured_on=("cpu",))
