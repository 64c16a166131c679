"""Results that nobody uses, wholly or for the most part, as an audit sees them (DS037)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import both_passes_ns, unused_names
from deepscope.analysis.findings.embeddings import padded_share
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.python_lines import runs_other_code
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.tiny_operators import looping_lines
from deepscope.quantities import count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import PartlyReadResults, UnusedResults

_ATTENTION = "MultiheadAttention"
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})

NUMBERS_WORTH = 0.05
"""A line of what is read as a number is named from this share of the wall time on."""


def _find(facts: Facts) -> Iterator[Finding]:
    yield from _find_unused_results(facts)
    yield from _find_partly_read(facts)


def _find_unused_results(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.results:
        saving_ns = both_passes_ns(facts, one)
        if one.is_number and facts.audited_line(one.place) in looping_lines(facts):
            continue  # whose time DS007 claims
        if one.module in _RECURRENT and not one.whole:
            continue  # they return their last state unasked
        if not one.module and not one.derivatives and _is_trainers(facts, facts.audited_line(one.place)):
            continue  # where nobody can leave it out
        what = "nothing that is computed here is used" if one.whole else "some of what is computed here is not used"
        if one.is_number:
            what = "what is computed here is read as numbers, and nothing else uses it"
        if one.derivatives:
            what = f"{one.derivatives:,} of {one.all_derivatives:,} derivatives that are taken here are not used"
        uses = [*one.operators, *one.backward]
        yield from RULE.found_at(
            facts,
            one.place,
            takes_ns=saving_ns,
            worth=NUMBERS_WORTH if one.is_number else None,
            is_bound=one.is_number,
            message=f"{what} in the steps that were looked at: {unused_names(uses)}",
            evidence={
                "unused_ns": saving_ns,
                "operators_per_step": sum(use.unused for use in uses),
                "result_bytes_per_step": one.result_bytes,
                **({"read_as": "numbers"} if one.is_number else {}),
            },
            remedy=_unused_results_remedy(one),
        )


def _is_trainers(facts: Facts, line: int) -> bool:
    """Whether a line runs backward passes or an optimizer, as one that calls a trainer does."""
    return line >= 0 and bool(facts.once(runs_other_code)[line])


def _unused_results_remedy(one: UnusedResults) -> str:
    if one.is_number:
        return (
            "If these are for a log, compute them every N steps (`if step % N == 0:`); take hooks off that have shown "
            "what they were made for (`handle.remove()`). What decides how the program goes on has to be computed."
        )
    if one.derivatives:
        return (
            "Take those alone that something needs: each call of `torch.autograd.grad` gives one row of a Jacobian or "
            "a Hessian, and costs a backward pass, which the loss's own goes through once more."
        )
    if one.module == _ATTENTION and not one.whole:
        return "Call the attention with `need_weights=False`: the average of its weights over the heads is never read."
    return (
        "Leave it out. If some steps use it (a metric that is logged now and then), compute it in those steps alone: "
        "`if step % N == 0:`."
    )


_CALL_NS = 5_000
"""An operator takes about this for few rows, too."""
SOME_CALLS_WORTH = 0.05
"""Where only some calls of a line compute too much, that takes at least this share of the wall time."""


def _find_partly_read(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.partly_read:
        if one.is_loaded:
            continue  # DS003 tells it
        work_ns = both_passes_ns(facts, one, each_ns=_CALL_NS)
        saving_ns = int(max(1 - one.read_rows / one.rows, 0.0) * work_ns * (1 - padded_share(facts, one.place)))
        yield from RULE.found_at(
            facts,
            one.place,
            takes_ns=saving_ns,
            worth=None if one.whole else SOME_CALLS_WORTH,
            message=f"{_calls(one)}{count_text(one.read_rows)} of {count_text(one.rows)} positions that are computed "
            f"here {'is' if one.read_rows == 1 else 'are'} read later: {unused_names(one.operators)}",
            evidence={
                "work_ns": work_ns,
                "rows": one.rows,
                "read_rows": one.read_rows,
                "operators_per_step": one.unused_calls,
                "result_bytes_per_step": one.result_bytes,
            },
            remedy=_partly_read_remedy(facts, one),
        )


def _calls(one: PartlyReadResults) -> str:
    if one.whole:
        return "only "
    uses = [use for use in one.operators if use.place == one.place and use.unused]
    return f"in {sum(use.unused for use in uses)} of {sum(use.times for use in uses)} operators here only "


def _partly_read_remedy(facts: Facts, one: PartlyReadResults) -> str:
    words = "Each position is computed by itself. Take the positions first"
    if one.ignored is not None:
        words = (
            f"The loss leaves targets of {one.ignored} out. Each position is computed by itself. Take the rest first"
        )
    if not one.whole:
        return (
            f"{words}, where these calls come last: a last layer of attention needs keys and values of all positions, "
            "and all else of those alone. Where a library makes the calls, look for its option (`logits_to_keep` in "
            "transformers)."
        )
    if not _has_layers(one):
        return (
            "Take what is read out of the arguments first. Of pairs (boxes and targets, say) compute those that belong "
            "together: each sample's own, padded to one length (`pad_sequence`), not all of a batch with all."
        )
    before = f" before {facts.audited_place_text(one.first)}" if one.first != one.place else ""
    if one.ignored is not None:
        keep = f"labels != {one.ignored}"
        return f"{words}{before}: `keep = {keep}`, then `head(hidden[keep])` for the loss of `labels[keep]`."
    return (
        f"{words}{before}: `head(x[:, -1])` in place of `head(x)[:, -1]`, `head(x[mask])` in place of `head(x)[mask]`."
    )


_OF_MODELS = re.compile("mm|attention|embedding|norm|softmax")


def _has_layers(one: PartlyReadResults) -> bool:
    """Whether layers of a model are among what is computed by position."""
    return any(use.unused and _OF_MODELS.search(use.name) for use in one.operators)


RULE = Rule("DS037", "Results that nobody uses", _find, shortens_work=True)
