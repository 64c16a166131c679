"""Work on positions that are padding (docs/findings/DS041.md)."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, both_passes_ns, found_at, location_of
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.format.audit import PaddedWork

PADDED_WORTH = 0.05
"""A line is named if the padding takes at least this share of the wall time."""
SORTED_WORTH = 0.1
"""The same where samples have to be sorted by their length to be rid of it."""
LEAST_SHARE = 0.2
"""Of the positions must be padding."""
_SHORTER = 0.9
"""A batch could be cut if its longest row has no more than this part of its length."""


def padded_share(facts: Facts, place: int) -> float:
    """The part of the work at a place of the audit that a finding calls padding."""
    return facts.once(_padded_shares).get(place, 0.0)


def _padded_shares(facts: Facts) -> dict[int, float]:
    named = {(one.file, one.line) for one in RULE.found(facts)}
    shares: dict[int, float] = {}
    for one in audit_of(facts).padding:
        location = location_of(facts, one.place)
        if location < 0 or (facts.locations[location].file, facts.locations[location].line) not in named:
            continue
        for use in one.operators:
            shares[use.place] = max(shares.get(use.place, 0.0), _saved_share(one))
    return shares


def _find_padded_batches(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).padding:
        share = min(one.padded / one.positions, 1.0)
        work_ns = both_passes_ns(facts, one.operators, one.backward)
        if share < LEAST_SHARE:
            continue
        yield from found_at(
            one.place,
            RULE,
            facts,
            takes_ns=int(_saved_share(one) * work_ns),
            worth=PADDED_WORTH if _can_be_cut(one) else SORTED_WORTH,
            message=f"{share:.0%} of the positions that are looked up here are padding: "
            f"{one.rows} rows of up to {one.length}, the longest with {one.longest} of its own",
            evidence={
                "padded_ratio": round(share, 3),
                "positions_per_step": one.positions,
                "padded_per_step": one.padded,
                "work_ns": work_ns,
            },
            remedy=_padded_batches_remedy(one),
            is_bound=not _can_be_cut(one),
        )


def _saved_share(one: PaddedWork) -> float:
    """Of the work on all positions: behind the longest row, if batches can be cut there, else that of all padding."""
    return 1 - one.longest / one.length if _can_be_cut(one) else min(one.padded / one.positions, 1.0)


def _can_be_cut(one: PaddedWork) -> bool:
    return one.longest <= _SHORTER * one.length


def _padded_batches_remedy(one: PaddedWork) -> str:
    cut = 'Pad each batch to its own longest sample (`padding="longest"`, `pad_sequence`). ' if _can_be_cut(one) else ""
    return (
        f"{cut}Put samples of similar length into one batch (sort by length within some batches; `group_by_length` in "
        "transformers), or pack them: `pack_padded_sequence`, nested tensors, attention with block masks."
    )


RULE = Rule("DS041", "Padded batches", _find_padded_batches, shortens_work=True, measured_on=("cpu",))
