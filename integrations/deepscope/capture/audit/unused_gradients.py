"""From what was watched: the gradients that nobody used, with the operators that were called for them alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.gradients import Gradient
from deepscope.capture.audit.operator_uses import operator_uses
from deepscope.capture.audit.places import Places, common_call
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import UnusedGradients

_MOST_MODULES = 8


def unused_gradients(watch: Watch, places: Places, modules: Iterable[Any]) -> list[UnusedGradients]:
    """Of the first step, by backward pass; `modules`: those that are alive, for the names of parameters."""
    flow = watch.flow
    candidates = [one for one in watch.gradients.all if not one.is_used]
    used = [number for one in watch.gradients.all if one.is_used for number in one.operations]
    kept = flow.kept(without=[one.storage for one in candidates if one.storage is not None])
    live = flow.reaching([*flow.sinks(), *kept, *used])
    by_pass: dict[int, list[Gradient]] = defaultdict(list)
    for one in candidates:
        first = flow.operations[one.operations[0]]
        if first.step == 0 and live.isdisjoint(one.operations):
            by_pass[first.pass_number].append(one)
    if not by_pass:
        return []
    names = _owners(modules)
    all_of_pass: dict[int, list[tuple[int, Operation]]] = defaultdict(list)
    for number, operation in enumerate(flow.operations):
        if operation.pass_number in by_pass:
            all_of_pass[operation.pass_number].append((number, operation))
    found = [
        _of_pass(watch, places, all_of_pass[number], gradients, live=live, names=names)
        for number, gradients in by_pass.items()
    ]
    return [one for one in found if one is not None]


def _of_pass(
    watch: Watch,
    places: Places,
    operations: Sequence[tuple[int, Operation]],
    gradients: Sequence[Gradient],
    *,
    live: set[int],
    names: Mapping[int, str],
) -> UnusedGradients | None:
    paths = watch.paths.paths
    unused = {number for number, _ in operations if number not in live}
    called_at = common_call(paths[one.forward_path] for number, one in operations if number in unused)
    if not called_at:
        return None
    depth = len(called_at)
    below = [number for number, one in operations if paths[one.forward_path][:depth] == called_at]
    caller = paths[watch.passes[operations[0][1].pass_number]]
    fates = Counter(one.fate for one in gradients)
    return UnusedGradients(
        place=places.number_of(called_at[-1]),
        backward=places.number_of(caller[-1]) if caller else -1,
        fate=fates.most_common(1)[0][0],
        parameters=len(gradients),
        elements=sum(one.elements for one in gradients),
        modules=_outermost(names, gradients),
        whole=not any(number in live for number in below),
        clipped=any(one.is_clipped for one in gradients),
        operators=operator_uses(watch, places, operations, unused),
    )


def _owners(modules: Iterable[Any]) -> dict[int, str]:
    """The path of the module that has each parameter, by `id` of the parameter, in the largest tree that has it."""
    living = list(modules)
    children = {id(child) for module in living for child in module.__dict__.get("_modules", {}).values()}
    roots = [module for module in living if id(module) not in children]
    found: dict[int, str] = {}
    for root in roots:
        for path, module in root.named_modules():
            for parameter in module.__dict__.get("_parameters", {}).values():
                if parameter is not None:
                    found.setdefault(id(parameter), path or type(root).__name__)
    return found


def _outermost(names: Mapping[int, str], gradients: Iterable[Gradient]) -> list[str]:
    """The modules that have the parameters, and in place of modules whose parameters are all among them, these."""
    chosen = {id(parameter) for one in gradients if (parameter := one.parameter()) is not None}
    paths = {names[one] for one in chosen if one in names}
    others = {path for one, path in names.items() if one not in chosen}
    found: dict[str, None] = {}
    for path in sorted(paths):
        parts = path.split(".")
        whole = path
        for length in range(1, len(parts)):
            above = ".".join(parts[:length])
            if not any(other == above or other.startswith(f"{above}.") for other in others):
                whole = above
                break
        found[whole] = None
    return list(found)[:_MOST_MODULES]
