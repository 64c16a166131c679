"""From what was watched: tables (embeddings) of which a step uses some rows, and whose gradient has all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.gradients import Gradient
from deepscope.capture.audit.operator_uses import operator_uses
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import TableGradient


class _Stepper(NamedTuple):
    """The optimizer of a parameter."""

    kind: str
    """Its class."""
    keeps_rows: bool
    """Whether its step leaves a row without a gradient as it is."""


def table_gradients(watch: Watch, places: Places, optimizers: Iterable[Any]) -> list[TableGradient]:
    """Of the first step, the largest tables first."""
    operations, paths, looked_up = watch.flow.operations, watch.paths.paths, watch.looked_up
    backward = [(number, one) for number, one in enumerate(operations) if one.step == 0 and one.pass_number >= 0]
    steppers, elements = _steppers(optimizers)
    given: dict[int, list[Gradient]] = defaultdict(list)
    for one in watch.gradients.all:
        if operations[one.operations[0]].step == 0:
            given[id(one.parameter())].append(one)
    found = []
    for key, gradients in given.items():
        numbers = looked_up.made_of(gradients)
        path = paths[operations[numbers[0]].forward_path] if numbers else ()
        stepper = steppers.get(key)
        if not path or stepper is None or not all(one.is_used for one in gradients):
            continue
        lines = {operations[number].forward_path for number in numbers}
        found.append(
            TableGradient(
                place=places.number_of(path[-1]),
                rows=looked_up.rows[numbers[0]],
                used_rows=len(frozenset[int]().union(*(looked_up.used[number] for number in numbers))),
                elements=gradients[0].elements,
                optimizer=stepper.kind,
                stepped_elements=elements[stepper.kind],
                keeps_rows=stepper.keeps_rows,
                clipped=any(one.is_clipped for one in gradients),
                operators=operator_uses(
                    watch, places, [pair for pair in backward if pair[1].forward_path in lines], set(numbers)
                ),
            )
        )
    return sorted(found, key=lambda one: -one.elements)


def _steppers(optimizers: Iterable[Any]) -> tuple[dict[int, _Stepper], Counter[str]]:
    """The optimizer of each parameter, by its `id`, and the elements that optimizers of each class step."""
    found: dict[int, _Stepper] = {}
    elements: Counter[str] = Counter()
    for optimizer in optimizers:
        kind = type(optimizer).__name__
        for group in getattr(optimizer, "param_groups", None) or ():
            is_plain = type(optimizer) is torch.optim.SGD and not (group.get("momentum") or group.get("weight_decay"))
            for one in group.get("params", ()):
                if isinstance(one, torch.Tensor) and one.requires_grad and id(one) not in found:
                    found[id(one)] = _Stepper(kind, is_plain)
                    elements[kind] += one.numel()
    return found, elements
