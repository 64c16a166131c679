"""DS042: results of each step are kept with their graphs."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, location_of
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).kept:
        results = "what is computed here is" if one.results == 1 else f"{one.results:,} results of this line are"
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"{results} kept beyond the step, with the graph of autograd: memory grows from step to step",
            evidence={
                "results_per_step": one.results,
                "operator": one.name.removeprefix("aten::"),
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=0,
            remedy="Keep numbers or detached tensors: `total += loss.detach()`, `losses.append(loss.detach())`; "
            "`.item()` waits for the device.",
            severity="info",
        )


RULE = Rule("DS042", "Graphs kept beyond their step", _find)
