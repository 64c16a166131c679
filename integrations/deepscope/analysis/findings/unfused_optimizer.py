"""DS011: on the CPU, an optimizer that loops over parameters in Python where one fused call would do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import named
from deepscope.analysis.findings.calls_below import marked
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option
from deepscope.analysis.findings.optimizer_steps import begin_ns, operators_of_steps
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.model import Int64
from deepscope.trace.names import stepped_optimizer

WORTH = 0.1
"""An optimizer is named if a fused one would save at least this share of the wall time."""
MANY = 20
"""A step loops if it starts at least so many operators."""
FEWEST = 2
"""Fewer steps do not tell what a step takes."""
CALL_NS = 10_000
"""At most so much of an operator is the call, the rest is arithmetic on its tensors."""
OF_CALLS = 0.5
"""The part of the calls, and of the Python around them, that a fused step does not make."""
FUSED = frozenset({"Adam", "AdamW", "Adagrad", "SGD"})
"""The optimizers with a fused step on the CPU."""


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not _has_fused(facts.trace.header.versions.get("torch", "")):
        return
    steps, below, above = _loops(facts)
    events = facts.trace.events
    location = facts.attribution.owners.location[steps]
    arithmetic = np.zeros(len(steps), np.int64)
    np.add.at(arithmetic, above, np.maximum(events.duration_ns[below] - CALL_NS, 0))
    whole = events.end_ns[steps] - begin_ns(facts, marked(facts, steps))[steps]
    calls = np.maximum(whole - arithmetic, 0)
    for line, name in sorted(set(zip(location.tolist(), events.name[steps].tolist(), strict=True))):
        here = (location == line) & (events.name[steps] == name)
        times = int(here.sum())
        saving = int(OF_CALLS * times * _median(calls[here]))
        if times < FEWEST or saving < max(WORTH * facts.wall_ns, 1):
            continue
        optimizer = stepped_optimizer(facts.trace.strings[name])
        count = int(here[above].sum())
        yield RULE.finding(
            facts,
            location=line,
            message=f"`{optimizer}` steps one parameter after the other, with several small operators for each",
            evidence={
                "optimizer_ns": times * _median(whole[here]),
                "operators": count,
                "operators_per_step": facts.per_step(count),
            },
            saving_ns=saving,
            remedy=f"Make it with `{optimizer}(…, fused=True)` (on the CPU from torch 2.4 on): one call for all."
            + framework_option(facts, RULE.code),
        )


def _median(values: Int64) -> int:
    """The lower median: one step that is held up by something else does not count."""
    return int(np.sort(values)[(len(values) - 1) // 2])


def _has_fused(version: str) -> bool:
    """Whether this torch has fused optimizers for the CPU; so it seems where the version is not known."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= (2, 4)


def _loops(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """Steps that loop of optimizers with a fused form, what they start, and in which of the steps each of these is.

    The first are events, ascending; the second the outermost operators; the third positions in the first.
    """
    outer, above = operators_of_steps(facts, FUSED.__contains__)
    fused = named(facts.trace, marked(facts, outer), lambda name: "_fused_" in name)[outer]
    loops = np.bincount(above, minlength=len(facts.trace.events)) >= MANY
    loops[above[fused]] = False
    steps, chosen = np.flatnonzero(loops), loops[above]
    return steps, outer[chosen], np.searchsorted(steps, above[chosen])


RULE = Rule("DS011", "Optimizer loops over parameters", _find, measured_on=("cpu",))
