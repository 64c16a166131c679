"""Embeddings: positions of batches that are padding, and gradients of whole tables (DS040, DS041)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from deepscope.analysis.findings.audited_work import both_passes_ns, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.optimizer import fused_saving, operators_of_steps
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import PaddedWork, TableGradient

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
    named = {(one.file, one.line) for one in PADDED_BATCHES.found(facts)}
    shares: dict[int, float] = {}
    for one in facts.audit.padding:
        location = facts.audited_line(one.place)
        if location < 0 or (facts.locations[location].file, facts.locations[location].line) not in named:
            continue
        for use in one.operators:
            shares[use.place] = max(shares.get(use.place, 0.0), _saved_share(one))
    return shares


def _find_padded_batches(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.padding:
        share = min(one.padded / one.positions, 1.0)
        work_ns = both_passes_ns(facts, one)
        if share < LEAST_SHARE:
            continue
        yield from PADDED_BATCHES.found_at(
            facts,
            one.place,
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


PADDED_BATCHES = Rule("DS041", "Padded batches", _find_padded_batches, shortens_work=True, measured_on=("cpu",))


_SPARSE_NS = {"SGD": (45_000, 1.0), "Adagrad": (130_000, 3.5)}
_OTHER_SPARSE_NS = (170_000, 6.0)
"""What a sparse gradient and the optimizer's step of it take on a core: a table, and each element of the rows that were
looked up (docs/findings/DS040.md)."""


def _sparse_ns(one: TableGradient) -> int:
    of_table, of_element = _SPARSE_NS.get(one.optimizer, _OTHER_SPARSE_NS)
    return int(of_table + of_element * one.used_rows * one.elements / max(one.rows, 1))


def _find_table_gradients(facts: Facts) -> Iterator[Finding]:
    if (facts.trace.header.world_size or 1) > 1:
        return  # NCCL reduces no sparse gradients
    alike: dict[tuple[int, str], list[TableGradient]] = defaultdict(list)
    for one in facts.audit.tables:
        if 0 < one.used_rows < one.rows:
            alike[one.place, one.optimizer].append(one)
    for (place, optimizer), tables in alike.items():
        gradient_ns = [unused_ns(facts, one.operators, backward=True) for one in tables]
        optimizer_ns = [_optimizer_ns(facts, one) for one in tables]
        saving_ns = _saving_ns(facts, tables, gradient_ns, optimizer_ns)
        fused_ns, fused_share = fused_saving(facts, optimizer)
        if fused_ns >= saving_ns:  # the optimizer's time counts there
            optimizer_ns = [int((1 - fused_share) * one) for one in optimizer_ns]
            saving_ns = _saving_ns(facts, tables, gradient_ns, optimizer_ns)
        rows, used_rows = sum(one.rows for one in tables), sum(one.used_rows for one in tables)
        subject = "a table of" if len(tables) == 1 else f"{len(tables)} tables with"
        yield from WHOLE_TABLES.found_at(
            facts,
            place,
            takes_ns=saving_ns,
            message=f"of {subject} {count_text(rows)} rows a step looks {count_text(used_rows)} up here, and the "
            "gradient and the optimizer's step are of all of them",
            evidence={
                "gradient_ns": sum(gradient_ns),
                "optimizer_ns": sum(optimizer_ns),
                "tables": len(tables),
                "rows": rows,
                "rows_per_step": used_rows,
            },
            remedy=_table_gradients_remedy(tables),
        )


def _saving_ns(
    facts: Facts, tables: Sequence[TableGradient], gradient_ns: Sequence[int], optimizer_ns: Sequence[int]
) -> int:
    """Of the time of tables with all their rows: that of the unused ones, and no more than sparse gradients leave."""
    saving_ns = 0
    for one, *parts_ns in zip(tables, gradient_ns, optimizer_ns, strict=True):
        dense_ns = sum(parts_ns)
        saved_ns = int((1 - one.used_rows / one.rows) * dense_ns)
        saving_ns += saved_ns if facts.has_device else max(min(saved_ns, dense_ns - facts.steps * _sparse_ns(one)), 0)
    return saving_ns


def _optimizer_ns(facts: Facts, one: TableGradient) -> int:
    """The table's part of its optimizer's steps, by its elements."""
    if not one.stepped_elements:
        return 0
    operators, _ = operators_of_steps(facts, lambda optimizer: optimizer == one.optimizer)
    part = min(one.elements / one.stepped_elements, 1.0)
    return int(part * int(facts.cost_ns(np.sort(operators)).sum()))


def _table_gradients_remedy(tables: Sequence[TableGradient]) -> str:
    words = "Make the embedding with `sparse=True`: its gradient then has the rows that were looked up"
    optimizer = tables[0].optimizer
    if all(one.keeps_rows for one in tables):
        words += f", `{optimizer}` steps these alone, and the results are the same."
    else:
        words += (
            f". `{optimizer}` steps all rows or takes no such gradient: give the table to `SparseAdam`, or to "
            "`SGD` without momentum and weight decay. Other rows then stay as they are, so losses differ."
        )
    if any(one.clipped for one in tables):
        words += " `clip_grad_norm_` takes no sparse gradients: clip the other parameters."
    return words


WHOLE_TABLES = Rule("DS040", "Gradients of whole tables", _find_table_gradients, measured_on=("cpu",))
