"""DS041: much of a batch of sequences is padding."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, both_passes_ns, location_of
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.format.audit import PaddedWork

WORTH = 0.05
"""A line is named if the padding takes at least this share of the wall time."""
LEAST_SHARE = 0.2
"""Of the positions must be padding."""
_SHORTER = 0.9
"""A batch could be cut if its longest row has no more than this part of its length."""


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).padding:
        share = min(one.padded / one.positions, 1.0)
        work_ns = both_passes_ns(facts, one.operators, one.backward)
        if share < LEAST_SHARE or share * work_ns < max(WORTH * facts.wall_ns, 1):
            continue
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"{share:.0%} of the positions that are looked up here are padding: "
            f"{one.rows} rows of up to {one.length}, the longest with {one.longest} of its own",
            evidence={
                "padded_ratio": round(share, 3),
                "positions_per_step": one.positions,
                "padded_per_step": one.padded,
                "work_ns": work_ns,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=int(share * work_ns),
            remedy=_remedy(one),
            is_bound=not _can_be_cut(one),
        )


def _can_be_cut(one: PaddedWork) -> bool:
    return one.longest <= _SHORTER * one.length


def _remedy(one: PaddedWork) -> str:
    cut = 'Pad each batch to its own longest sample (`padding="longest"`, `pad_sequence`). ' if _can_be_cut(one) else ""
    return (
        f"{cut}Put samples of similar length into one batch (sort by length within some batches; `group_by_length` in "
        "transformers), or pack them: `pack_padded_sequence`, nested tensors, attention with block masks."
    )


RULE = Rule("DS041", "Padded batches", _find, shortens_work=True, measured_on=("cpu",))
