"""DS040: the gradient of an embedding has all of its rows, and a step uses few of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.findings.audited_work import audit_of, location_of, unused_ns
from deepscope.analysis.findings.calls_below import cost_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.optimizer_steps import operators_of_steps
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import TableGradient

WORTH = 0.02
"""A table is named if it would save at least this share of the wall time."""


def _find(facts: Facts) -> Iterator[Finding]:
    if (facts.trace.header.world_size or 1) > 1:
        return  # NCCL reduces no sparse gradients
    for one in audit_of(facts).tables:
        if not 0 < one.used_rows < one.rows:
            continue
        unused = 1 - one.used_rows / one.rows
        gradient_ns = unused_ns(facts, one.operators, backward=True)
        optimizer_ns = _optimizer_ns(facts, one)
        saving_ns = int(unused * (gradient_ns + optimizer_ns))
        if saving_ns < max(WORTH * facts.wall_ns, 1):
            continue
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"of a table of {count_text(one.rows)} rows a step looks {count_text(one.used_rows)} up here, and "
            "the gradient and the optimizer's step are of all of them",
            evidence={
                "gradient_ns": gradient_ns,
                "optimizer_ns": optimizer_ns,
                "rows": one.rows,
                "rows_per_step": one.used_rows,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=saving_ns,
            remedy=_remedy(one),
        )


def _optimizer_ns(facts: Facts, one: TableGradient) -> int:
    """The table's part of what its optimizer's steps take, by its elements."""
    if not one.stepped_elements:
        return 0
    operators, _ = operators_of_steps(facts, lambda optimizer: optimizer == one.optimizer)
    part = min(one.elements / one.stepped_elements, 1.0)
    return int(part * int(cost_ns(facts, np.sort(operators)).sum()))


def _remedy(one: TableGradient) -> str:
    words = "Make the embedding with `sparse=True`: its gradient then has the rows that were looked up"
    if one.keeps_rows:
        words += ", `SGD` steps these alone, and the results are the same."
    else:
        words += (
            f". `{one.optimizer}` steps all rows or takes no such gradient: give the table to `SparseAdam`, or to "
            "`SGD` without momentum and weight decay. Other rows then stay as they are, so losses differ."
        )
    if one.clipped:
        words += " `clip_grad_norm_` takes no sparse gradients: clip the other parameters."
    return words


RULE = Rule("DS040", "Gradients of whole tables", _find, measured_on=("cpu",))
