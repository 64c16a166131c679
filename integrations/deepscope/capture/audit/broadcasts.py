"""From what was watched: tensors that broadcasting makes much larger than its arguments, and that are reduced again."""

from __future__ import annotations

import math
from collections import defaultdict

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import Broadcast

_TIMES = 8
"""So much larger than the arguments, and than what it is reduced to."""
_REDUCTIONS = frozenset(
    f"aten::{name}"
    for name in [
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "any",
        "all",
        "norm",
        "linalg_vector_norm",
        "logsumexp",
        "argmax",
        "argmin",
        "prod",
        "var",
        "std",
    ]
)
_COMPARISONS = frozenset(f"aten::{name}" for name in ["eq", "ne", "lt", "le", "gt", "ge"])
_BROADCASTING = frozenset(f"aten::{name}" for name in ["add", "sub", "mul", "div", "minimum", "maximum"]) | _COMPARISONS


def broadcasts(watch: Watch, work: StepWork, places: Places) -> list[Broadcast]:
    """Of the first step, by the line that broadcasts, the largest first."""
    operations, paths = watch.flow.operations, watch.paths.paths
    readers: dict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(operations):
        if one.pass_number < 0:
            for source in one.inputs:
                readers[source].append(number)
    found = []
    for number, one in work.forward:
        chain = _chain(operations, readers, number) if _is_broadcast(one) else set()
        if not chain:
            continue
        found.append(
            Broadcast(
                place=places.number_of(paths[one.call.path][-1]),
                name=one.name,
                reduction=next(operations[last].name for last in sorted(chain) if operations[last].name in _REDUCTIONS),
                shape=list(one.shape),
                given_elements=one.given_elements,
                result_bytes=one.result_bytes,
                operators=work.uses(chain),
                backward=work.backward_uses(chain),
            )
        )
    return sorted(found, key=lambda row: -row.result_bytes)


def _is_broadcast(one: Operation) -> bool:
    return one.name in _BROADCASTING and 0 < _TIMES * one.given_elements <= math.prod(one.shape)


def _chain(operations: list[Operation], readers: dict[int, list[int]], first: int) -> set[int]:
    """The operations from the one that makes a large tensor to those that reduce it; none if it is used otherwise."""
    elements = math.prod(operations[first].shape)
    found, left, is_reduced = {first}, [first], False
    while left:
        for number in readers[left.pop()]:
            one = operations[number]
            size = math.prod(one.shape)
            if one.name in _REDUCTIONS and _TIMES * size <= elements:
                is_reduced = True
                found.add(number)
            elif size != elements or one.is_sink:
                return set()
            elif number not in found:
                found.add(number)
                left.append(number)
    return found if is_reduced else set()
