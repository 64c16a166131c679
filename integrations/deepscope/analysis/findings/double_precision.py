"""DS036: operators compute with 64 bits a number."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, both_passes_ns, location_of
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding

WORTH = 0.02
"""It is reported if it would save at least this share of the wall time."""
_SHARE = 0.5
"""Of the time: half of the bytes, and on CPUs half of the arithmetic; GPUs may save more."""


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).double:
        double_ns = both_passes_ns(facts, one.operators, one.backward)
        saving_ns = int(_SHARE * double_ns)
        if saving_ns < max(WORTH * facts.wall_ns, 1):
            continue
        elsewhere = f" and goes on at {one.lines - 1} more line{'s' * (one.lines > 2)}" if one.lines > 1 else ""
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"work with float64, 64 bits a number, begins here{elsewhere}",
            evidence={
                "double_ns": double_ns,
                "operators_per_step": sum(use.unused for use in (*one.operators, *one.backward)),
                "result_bytes_per_step": one.result_bytes,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=saving_ns,
            remedy="Unless the precision is meant: make the data float32 where it comes from (NumPy's is float64): "
            "`torch.from_numpy(a).float()`, `torch.tensor(a, dtype=torch.float32)`; and take `.double()` and "
            "`set_default_dtype(torch.float64)` away.",
        )


RULE = Rule("DS036", "Computed with 64 bits", _find, shortens_work=True, measured_on=("cpu",))
