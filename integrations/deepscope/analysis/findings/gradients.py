"""Gradients that nobody uses; graphs of autograd's without a backward pass, or kept too long (DS033, DS038, DS042)."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import bytes_text, count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import UnusedGradients

_NAMED = 3
"""Modules that are named."""


def _find_unused_gradients(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.gradients:
        saving_ns = unused_ns(facts, one.operators, backward=True)
        yield from UNUSED_GRADIENTS.found_at(
            facts,
            one.place,
            takes_ns=saving_ns,
            message=_message(facts, one),
            evidence={
                "unused_ns": saving_ns,
                "parameters": one.parameters,
                "elements": one.elements,
                "modules": ", ".join(one.modules),
                "fate": one.fate.replace("_", " "),
            },
            remedy=_unused_gradients_remedy(facts, one),
        )


def _message(facts: Facts, one: UnusedGradients) -> str:
    where = facts.audited_place_text(one.backward)
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


def _unused_gradients_remedy(facts: Facts, one: UnusedGradients) -> str:
    modules = " and ".join(f"`{module}`" for module in one.modules[:_NAMED]) or "these parameters"
    if one.fate == "no_optimizer":
        words = f"Freeze {modules} where the model is made: `requires_grad_(False)`."
        if one.whole:
            words += " This line can then run under `torch.no_grad()` if its inputs need no gradients."
    elif one.whole:
        where = facts.audited_place_text(one.backward)
        loss = f"the loss of {where}" if where else "that loss"
        words = f"Give {loss} what this line returns with `.detach()`"
        words += ": the graph is needed for another loss." if one.shared else ", or make it under `torch.no_grad()`."
    else:
        words = f"Call `requires_grad_(False)` on {modules} before that backward pass's forward pass, `True` behind it."
    if one.clipped:
        words += " Their norm is part of what clipping measures: without them it clips less."
    return words


UNUSED_GRADIENTS = Rule("DS033", "Gradients that nobody uses", _find_unused_gradients, measured_on=("cpu", "device"))


_SHARE = 0.1
"""Of the forward work's time (docs/findings/DS038.md)."""


def _find_unused_graphs(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.graphs:
        forward_ns = unused_ns(facts, one.operators, backward=False)
        yield from UNUSED_GRAPHS.found_at(
            facts,
            one.place,
            takes_ns=forward_ns,
            message="autograd keeps a graph of what is computed here, with up to "
            f"{bytes_text(one.result_bytes) or '0B'} of results, and no backward pass goes through it",
            evidence={
                "forward_ns": forward_ns,
                "operators_per_step": one.unused_calls,
                "result_bytes_per_step": one.result_bytes,
            },
            saving_ns=int(_SHARE * forward_ns),
            remedy="Call it under `with torch.no_grad():` (or `torch.inference_mode()`), which keeps nothing for a "
            "backward pass: less memory, and somewhat less time.",
        )


UNUSED_GRAPHS = Rule(
    "DS038",
    "A graph without a backward pass",
    _find_unused_graphs,
    shortens_work=True,
    measured_on=("cpu",),
    worth=0.05,
)


def _find_kept_graphs(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.kept:
        results = "what is computed here is" if one.results == 1 else f"{one.results:,} results of this line are"
        yield KEPT_GRAPHS.finding(
            facts,
            location=facts.audited_line(one.place),
            message=f"{results} kept beyond the step, with the graph of autograd: memory grows from step to step",
            evidence={
                "results_per_step": one.results,
                "operator": one.name.removeprefix("aten::"),
                "looked_at_steps": facts.audit.steps,
            },
            saving_ns=0,
            remedy="Keep numbers or detached tensors: `total += loss.detach()`, `losses.append(loss.detach())`; "
            "`.item()` waits for the device.",
            severity="info",
        )


KEPT_GRAPHS = Rule("DS042", "Graphs kept beyond their step", _find_kept_graphs)
