"""DS033: a backward pass computes gradients of parameters that nobody steps."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, location_of, place_words, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import UnusedGradients

WORTH = 0.02
"""A place is named if it would save at least this share of the wall time."""
_NAMED = 3
"""Modules that are named."""


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).gradients:
        saving_ns = unused_ns(facts, one.operators, backward=True)
        if saving_ns < max(WORTH * facts.wall_ns, 1):
            continue
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=_message(facts, one),
            evidence={
                "unused_ns": saving_ns,
                "parameters": one.parameters,
                "elements": one.elements,
                "modules": ", ".join(one.modules),
                "fate": one.fate.replace("_", " "),
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=saving_ns,
            remedy=_remedy(facts, one),
        )


def _message(facts: Facts, one: UnusedGradients) -> str:
    where = place_words(facts, one.backward)
    subject = f"the backward pass{f' at {where}' if where else ''} computes gradients of {_modules(one)}"
    if one.fate == "no_optimizer":
        return f"{subject} that no optimizer steps"
    return f"{subject} that are cleared before their optimizer steps"


def _modules(one: UnusedGradients) -> str:
    parameters = f"{count_text(one.parameters)} parameter{'' if one.parameters == 1 else 's'}"
    if not one.modules:
        return parameters
    more = ", …" if len(one.modules) > _NAMED else ""
    return f"{parameters} ({', '.join(one.modules[:_NAMED])}{more})"


def _remedy(facts: Facts, one: UnusedGradients) -> str:
    modules = " and ".join(f"`{module}`" for module in one.modules[:_NAMED]) or "these parameters"
    if one.fate == "no_optimizer":
        words = f"Freeze {modules} where the model is made: `requires_grad_(False)`."
        if one.whole:
            words += " This line can then run under `torch.no_grad()` if its inputs need no gradients."
    elif one.whole:
        where = place_words(facts, one.backward)
        loss = f"the loss of {where}" if where else "that loss"
        words = f"Give {loss} what this line returns with `.detach()`, or make it under `torch.no_grad()`."
    else:
        words = f"Call `requires_grad_(False)` on {modules} before that backward pass's forward pass, `True` behind it."
    if one.clipped:
        words += " Their norm is part of what clipping measures: without them it clips less."
    return words


RULE = Rule("DS033", "Gradients that nobody uses", _find, measured_on=("cpu", "device"))
